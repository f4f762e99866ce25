#include "sign/signature.h"

#include <doctest/doctest.h>

#include "edgecase/random.h"

namespace edgecase::sign {
namespace {

// RFC 6979, A.2.5: P-256, SHA-256, message "sample".
constexpr char kSecretHex[] = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
constexpr char kSignatureHex[] =
    "3046022100efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
    "022100f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";

Bytes bytes_of(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

}  // namespace

TEST_CASE("sign: the example of RFC 6979") {
  SeededRandom random(1);
  const auto signature = sign(bytes_of(kSecretHex), "sample", random);
  REQUIRE(signature.ok());
  CHECK(*signature == bytes_of(kSignatureHex));
  const auto key = public_key_of(bytes_of(kSecretHex), random);
  REQUIRE(key.ok());
  CHECK(verify(*key, "sample", *signature).ok());
  CHECK(fingerprint(*key).size() == 64);
}

TEST_CASE("sign: what was changed, and what another key signed, is found") {
  SeededRandom random(2);
  const Bytes secret = make_secret(random).value();
  const Bytes others = make_secret(random).value();
  REQUIRE(secret.size() == kSecretBytes);
  const std::string key = public_key_of(secret, random).value();
  const Bytes signature = sign(secret, "text", random).value();
  CHECK(verify(key, "text", signature).ok());
  CHECK(verify(key, "texT", signature).code() == StatusCode::Corruption);
  CHECK(verify(public_key_of(others, random).value(), "text", signature).code() ==
        StatusCode::Corruption);
  for (std::size_t at = 0; at < signature.size(); ++at) {
    Bytes flipped = signature;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    CHECK(verify(key, "text", flipped).code() == StatusCode::Corruption);
    CHECK(verify(key, "text", signature.substr(0, at)).code() == StatusCode::Corruption);
  }
}

TEST_CASE("sign: what is no key is told") {
  SeededRandom random(3);
  for (const Bytes& secret : {Bytes(), Bytes(31, 'x'), Bytes(32, '\0'), Bytes(32, '\xff')}) {
    CHECK(public_key_of(secret, random).status().code() == StatusCode::Corruption);
    CHECK(sign(secret, "text", random).status().code() == StatusCode::Corruption);
  }
  for (const char* key :
       {"", "key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"})
    CHECK(verify(key, "text", "signature").code() == StatusCode::InvalidArgument);
  CHECK(fingerprint("key").empty());
}

}  // namespace edgecase::sign
