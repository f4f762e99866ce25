#include "crypto/aes_gcm.h"

#include <doctest/doctest.h>

#include "crypto/key_derivation.h"
#include "edgecase/random.h"

namespace edgecase::engine {
namespace {

SecretKey key_of(char byte) {
  SecretKey key;
  key.fill(static_cast<std::uint8_t>(byte));
  return key;
}

Bytes some_bytes(std::size_t size) {
  SeededRandom random(size + 1);
  Bytes bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(random.next()));
  return bytes;
}

Bytes sealed(AesGcm& gcm, const GcmNonce& nonce, ByteView associated, ByteView plain) {
  Bytes out(plain.size() + kGcmTagBytes, '\0');
  gcm.seal(nonce, associated, plain, out.data());
  return out;
}

}  // namespace

TEST_CASE("AES-GCM computes what its specification says") {
  CHECK(test_aes_gcm().ok());
}

TEST_CASE("what was sealed opens whole, in place, and in no other way") {
  AesGcm gcm(key_of('k'));
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 1000u}) {
    CAPTURE(size);
    const Bytes plain = some_bytes(size);
    Bytes bytes = sealed(gcm, {1}, "where", plain);
    CHECK(bytes.substr(0, size) != (size < 4 ? Bytes("none") : plain));
    for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
      Bytes changed = bytes;
      changed[byte] = static_cast<char>(changed[byte] ^ 4);
      CHECK_FALSE(gcm.open({1}, "where", changed, changed.data()));
    }
    Bytes other = bytes;
    CHECK_FALSE(gcm.open({2}, "where", other, other.data()));
    other = bytes;
    CHECK_FALSE(gcm.open({1}, "there", other, other.data()));
    other = bytes;
    CHECK_FALSE(AesGcm(key_of('K')).open({1}, "where", other, other.data()));
    CHECK_FALSE(gcm.open({1}, "where", ByteView(bytes).substr(1), other.data()));
    CHECK_FALSE(gcm.open({1}, "where", ByteView(bytes).substr(0, 3), other.data()));
    REQUIRE(gcm.open({1}, "where", bytes, bytes.data()));
    CHECK(bytes.substr(0, size) == plain);
  }
}

TEST_CASE("in pieces comes out what comes out at once") {
  AesGcm gcm(key_of('p'));
  const Bytes plain = some_bytes(1000);
  Bytes pieces = plain;
  gcm.begin_sealing({7}, "a");
  gcm.seal_piece(pieces.data(), 512);
  gcm.seal_piece(pieces.data() + 512, 488);
  const auto tag = gcm.finish_sealing();
  pieces.append(tag.data(), tag.size());
  CHECK(pieces == sealed(gcm, {7}, "a", plain));
}

TEST_CASE("keys are derived as RFC 5869 says") {
  // Computed with another implementation: HKDF-SHA256(key 00 01 .. 1f, salt "salt", info "info").
  SecretKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  const SecretKey derived = derive_key(key, "salt", "info");
  const SecretKey expected = {0x64, 0xcc, 0x2a, 0x23, 0xb7, 0xa1, 0xda, 0x43, 0x10, 0x42, 0x03,
                              0x50, 0x40, 0x5f, 0xdf, 0x5d, 0x63, 0x2c, 0xb9, 0xbd, 0xa3, 0x70,
                              0x0d, 0x75, 0x3e, 0x96, 0xcb, 0xcf, 0xeb, 0x81, 0xd4, 0x49};
  CHECK(derived == expected);
  CHECK(derive_key(key, "salt", "else") != derived);
  CHECK(derive_key(key, "tlas", "info") != derived);
}

TEST_CASE("secret numbers do not repeat and depend on their source") {
  SeededRandom source(5);
  SeededRandom same(5);
  SeededRandom other(6);
  SecretRandom first(source);
  SecretRandom second(same);
  SecretRandom third(other);
  const SecretKey key = first.key();
  CHECK(key == second.key());
  CHECK(key != third.key());
  CHECK(first.key() != key);
  CHECK(first.number() != first.number());
}

}  // namespace edgecase::engine
