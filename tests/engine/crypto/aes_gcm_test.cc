#include "crypto/aes_gcm.h"

#include <doctest/doctest.h>
#include <mbedtls/gcm.h>

#include <algorithm>
#include <string_view>

#include "crypto/key_ring.h"
#include "edgecase/machine.h"
#include "support/test_seed.h"

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

// The other library's.
class OtherGcm {
 public:
  explicit OtherGcm(const SecretKey& key) {
    mbedtls_gcm_init(&gcm_);
    REQUIRE(mbedtls_gcm_setkey(&gcm_, MBEDTLS_CIPHER_ID_AES, key.data(), 256) == 0);
  }
  ~OtherGcm() { mbedtls_gcm_free(&gcm_); }
  OtherGcm(const OtherGcm&) = delete;
  OtherGcm& operator=(const OtherGcm&) = delete;

  Bytes seal(const GcmNonce& nonce, ByteView associated, ByteView plain) {
    Bytes out(plain.size() + kGcmTagBytes, '\0');
    REQUIRE(mbedtls_gcm_crypt_and_tag(&gcm_, MBEDTLS_GCM_ENCRYPT, plain.size(), nonce.data(),
                                      nonce.size(), unsigned_of(associated.data()),
                                      associated.size(), unsigned_of(plain.data()),
                                      unsigned_of(out.data()), kGcmTagBytes,
                                      unsigned_of(out.data() + plain.size())) == 0);
    return out;
  }

  bool open(const GcmNonce& nonce, ByteView associated, ByteView sealed, Bytes& plain) {
    plain.resize(sealed.size() - kGcmTagBytes);
    return mbedtls_gcm_auth_decrypt(&gcm_, plain.size(), nonce.data(), nonce.size(),
                                    unsigned_of(associated.data()), associated.size(),
                                    unsigned_of(sealed.data() + plain.size()), kGcmTagBytes,
                                    unsigned_of(sealed.data()), unsigned_of(plain.data())) == 0;
  }

 private:
  static const unsigned char* unsigned_of(const char* bytes) {
    return reinterpret_cast<const unsigned char*>(bytes);
  }
  static unsigned char* unsigned_of(char* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

  mbedtls_gcm_context gcm_;
};

Bytes bytes_of_hex(std::string_view digits) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  Bytes bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(16 * value(digits[i]) + value(digits[i + 1])));
  return bytes;
}

}  // namespace

TEST_CASE("a library that computes AES-GCM wrongly is found out, and named") {
  for (std::size_t byte = 0; byte < kGcmTagBytes; ++byte) {
    auto wrong = kGcmTestTag;
    wrong[byte] ^= 1;
    const Status status = compare_aes_gcm(wrong);
    CHECK(status.code() == StatusCode::Unsupported);
    CHECK(status.message().find("AES-256-GCM") != std::string_view::npos);
  }
}

TEST_CASE("AES-GCM computes what its specification says") {
  CHECK(test_aes_gcm().ok());
  struct Case {
    const char* key;
    const char* nonce;
    const char* associated;
    const char* plain;
    const char* sealed;
  };
  constexpr const char* kZeros = "0000000000000000000000000000000000000000000000000000000000000000";
  // Test cases 13, 14 and 16 of the mode's specification.
  for (const Case& c :
       {Case{kZeros, "000000000000000000000000", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
        Case{kZeros, "000000000000000000000000", "", "00000000000000000000000000000000",
             "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
        Case{"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
             "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
             "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c9595680953"
             "2fcf0e2449a6b525b16aedf5aa0de657ba637b39",
             "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3d"
             "a7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b"}}) {
    CAPTURE(c.sealed);
    SecretKey key;
    GcmNonce nonce;
    const Bytes key_bytes = bytes_of_hex(c.key);
    const Bytes nonce_bytes = bytes_of_hex(c.nonce);
    std::copy(key_bytes.begin(), key_bytes.end(), key.begin());
    std::copy(nonce_bytes.begin(), nonce_bytes.end(), nonce.begin());
    AesGcm gcm(key);
    CHECK(sealed(gcm, nonce, bytes_of_hex(c.associated), bytes_of_hex(c.plain)) ==
          bytes_of_hex(c.sealed));
  }
}

TEST_CASE("two libraries open what the other sealed") {
  const std::uint64_t seed = test::test_seed(20'261'122);
  CAPTURE(seed);
  SeededRandom random(seed);
  // Each length around the first blocks, then some at random.
  for (std::size_t i = 0; i < 170; ++i) {
    const std::size_t size = i < 70 ? i : random.next() % 70'000;
    const Bytes plain = some_bytes(size);
    const Bytes associated = some_bytes(i % 41);
    CAPTURE(size);
    CAPTURE(associated.size());
    SecretKey key;
    GcmNonce nonce;
    for (auto& byte : key) byte = static_cast<std::uint8_t>(random.next());
    for (auto& byte : nonce) byte = static_cast<std::uint8_t>(random.next());
    AesGcm gcm(key);
    OtherGcm other(key);
    Bytes ours = sealed(gcm, nonce, associated, plain);
    Bytes theirs = other.seal(nonce, associated, plain);
    CHECK(ours == theirs);
    Bytes opened;
    CHECK(other.open(nonce, associated, ours, opened));
    CHECK(opened == plain);
    opened.assign(size, '?');
    CHECK(gcm.open(nonce, associated, theirs, opened.data()));
    CHECK(opened == plain);
    const std::size_t bit = random.next() % (8 * theirs.size());
    theirs[bit / 8] = static_cast<char>(theirs[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(gcm.open(nonce, associated, theirs, opened.data()));
    CHECK_FALSE(other.open(nonce, associated, theirs, opened));
  }
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
  Bytes pieces(plain.size(), '\0');
  gcm.begin_sealing({7}, "a");
  gcm.seal_piece(ByteView(plain).substr(0, 512), pieces.data());
  pieces.replace(512, 488, plain, 512, 488);  // in place too
  gcm.seal_piece(ByteView(pieces).substr(512), pieces.data() + 512);
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
