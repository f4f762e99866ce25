#include "base/crc32c.h"

#include <doctest/doctest.h>

#include "edgecase/random.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::engine;

namespace {

// By the definition, a bit at a time: what both fast ways are compared with.
std::uint32_t by_definition(ByteView bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

}  // namespace

TEST_CASE("crc32c: known answers") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(Bytes(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(Bytes(32, '\xff')) == 0x62a8ab43);
}

TEST_CASE("crc32c: definition, tables and instruction agree at every length and alignment") {
  const std::uint64_t seed = test::test_seed(3);
  CAPTURE(seed);
  SeededRandom random(seed);
  Bytes bytes(900, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t size = 0; size + start <= bytes.size(); ++size) {
      const ByteView part = ByteView(bytes).substr(start, size);
      const std::uint32_t want = by_definition(part);
      REQUIRE(crc32c_extend_software(0, part) == want);
      if (crc32c_has_hardware()) REQUIRE(crc32c_extend_hardware(0, part) == want);
      if (crc32c_has_folding() && size >= kCrcFoldingMinBytes)
        REQUIRE(crc32c_extend_folding(0, part) == want);
      REQUIRE(crc32c(part) == want);
    }
  }
}

TEST_CASE("crc32c: a long piece behind another has the checksum of both") {
  const std::uint64_t seed = test::test_seed(4);
  CAPTURE(seed);
  SeededRandom random(seed);
  Bytes bytes(70'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  const ByteView view = bytes;
  const std::uint32_t want = by_definition(view);
  for (const std::size_t cut : {1u, 16u, 255u, 4096u, 65'000u}) {
    CAPTURE(cut);
    CHECK(crc32c_extend(crc32c(view.substr(0, cut)), view.substr(cut)) == want);
  }
}

TEST_CASE("crc32c: extending piece by piece is the checksum of the whole") {
  const Bytes bytes = "a reading is (namespace, device, sensor, time, value)";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const ByteView view = bytes;
    CHECK(crc32c_extend(crc32c(view.substr(0, cut)), view.substr(cut)) == crc32c(view));
    CHECK(crc32c_extend_software(crc32c(view.substr(0, cut)), view.substr(cut)) == crc32c(view));
  }
}
