#include "auth/hashing.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("sha256: the examples of FIPS 180-4") {
  const auto hex = [](std::string_view text) {
    return auth::hex_text(auth::view_of(auth::sha256(text)));
  };
  CHECK(hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("hmac_sha256: an example of RFC 4231") {
  CHECK(auth::hex_text(auth::view_of(auth::hmac_sha256("Jefe", "what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("digests are read back from hex, and compared at every byte") {
  const auth::Digest digest = auth::sha256("abc");
  auth::Digest back{};
  REQUIRE(auth::parse_digest(auth::hex_text(auth::view_of(digest)), back));
  CHECK(auth::equal_in_constant_time(digest, back));
  for (std::size_t i = 0; i < back.size(); ++i) {
    auth::Digest other = digest;
    other[i] = static_cast<unsigned char>(other[i] ^ 1);
    CHECK(!auth::equal_in_constant_time(digest, other));
  }
  CHECK(!auth::parse_digest("12", back));
  CHECK(!auth::parse_digest(std::string(64, 'g'), back));
}
