#include "auth/hashing.h"

#include <doctest/doctest.h>

namespace edgecase::auth {
namespace {

TEST_CASE("sealing: what was sealed opens with its key and number alone") {
  SeededRandom random(7);
  const Bytes key = make_seal_key(random), other = make_seal_key(random);
  REQUIRE(key.size() == kSealKeyBytes);
  CHECK(key != other);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{70'000}}) {
    CAPTURE(size);
    const Bytes text(size, 'k');
    const Bytes sealed = seal(key, 3, text);
    CHECK(sealed.find("kkk") == Bytes::npos);
    CHECK(open_sealed(key, 3, sealed).value() == text);
    CHECK(open_sealed(key, 4, sealed).status().code() == StatusCode::Corruption);
    CHECK(open_sealed(other, 3, sealed).status().code() == StatusCode::Corruption);
    CHECK(open_sealed(key, 3, ByteView(sealed).substr(1)).status().code() ==
          StatusCode::Corruption);
    Bytes changed = sealed;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    CHECK(open_sealed(key, 3, changed).status().code() == StatusCode::Corruption);
  }
  CHECK(open_sealed(key, 3, "").status().code() == StatusCode::Corruption);
  CHECK(open_sealed("short", 3, Bytes(40, 'x')).status().code() == StatusCode::Corruption);
}

}  // namespace
}  // namespace edgecase::auth
