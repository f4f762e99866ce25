// Which ciphers TLS has, and AES-GCM as mbedtls has it: in the portable builds it is another
// library's (toolchains/mbedtls/gcm_alt.c).
#include <doctest/doctest.h>
#include <mbedtls/gcm.h>
#include <mbedtls/ssl_ciphersuites.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tls/tls_setup.h"

namespace {

using Octets = std::vector<unsigned char>;

constexpr std::size_t kTagBytes = 16;

Octets octets_of_hex(std::string_view digits) {
  Octets bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(
        static_cast<unsigned char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

struct Gcm {
  explicit Gcm(const Octets& key) {
    mbedtls_gcm_init(&context);
    REQUIRE(mbedtls_gcm_setkey(&context, MBEDTLS_CIPHER_ID_AES, key.data(),
                               static_cast<unsigned>(8 * key.size())) == 0);
  }
  ~Gcm() { mbedtls_gcm_free(&context); }
  Gcm(const Gcm&) = delete;
  Gcm& operator=(const Gcm&) = delete;

  // The sealed bytes with the tag behind them.
  Octets seal(const Octets& nonce, const Octets& associated, const Octets& plain) {
    Octets out = plain;
    out.resize(plain.size() + kTagBytes);
    REQUIRE(mbedtls_gcm_crypt_and_tag(&context, MBEDTLS_GCM_ENCRYPT, plain.size(), nonce.data(),
                                      nonce.size(), associated.data(), associated.size(),
                                      out.data(), out.data(), kTagBytes,
                                      out.data() + plain.size()) == 0);
    return out;
  }

  // In place, as TLS does it.
  int open(const Octets& nonce, const Octets& associated, Octets& bytes) {
    const std::size_t plain_bytes = bytes.size() - kTagBytes;
    const Octets tag(bytes.end() - kTagBytes, bytes.end());
    bytes.resize(plain_bytes);
    return mbedtls_gcm_auth_decrypt(&context, plain_bytes, nonce.data(), nonce.size(),
                                    associated.data(), associated.size(), tag.data(), tag.size(),
                                    bytes.data(), bytes.data());
  }

  mbedtls_gcm_context context;
};

// Cases 4, 10 and 16 of the specification that was submitted to NIST: they differ in the key.
constexpr std::string_view kNonce = "cafebabefacedbaddecaf888";
constexpr std::string_view kAssociated = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
constexpr std::string_view kPlain =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";

struct Answer {
  std::string_view key;
  std::string_view sealed;
  std::string_view tag;
};

constexpr std::array<Answer, 3> kAnswers = {{
    {"feffe9928665731c6d6a8f9467308308",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
     "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c",
     "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c"
     "7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
     "2519498e80f1478f37ba55bd6d27618c"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
}};

}  // namespace

TEST_CASE("AES-GCM of TLS: what the standard says, for every length of key") {
  const Octets nonce = octets_of_hex(kNonce);
  const Octets associated = octets_of_hex(kAssociated);
  const Octets plain = octets_of_hex(kPlain);
  for (const Answer& answer : kAnswers) {
    INFO(answer.key.size() * 4 << " bits");
    Gcm gcm(octets_of_hex(answer.key));
    Octets sealed = gcm.seal(nonce, associated, plain);
    CHECK(sealed == octets_of_hex(std::string(answer.sealed) + std::string(answer.tag)));
    CHECK(gcm.open(nonce, associated, sealed) == 0);
    CHECK(sealed == plain);
  }
}

TEST_CASE("AES-GCM of TLS: what was changed anywhere does not open, and nothing of it is left") {
  const Octets nonce = octets_of_hex(kNonce);
  const Octets associated = octets_of_hex(kAssociated);
  const Octets plain = octets_of_hex(kPlain);
  Gcm gcm(octets_of_hex(kAnswers[0].key));
  const Octets sealed = gcm.seal(nonce, associated, plain);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    Octets changed = sealed;
    changed[i] ^= 0x10;
    CHECK(gcm.open(nonce, associated, changed) == MBEDTLS_ERR_GCM_AUTH_FAILED);
    CHECK(changed == Octets(plain.size()));
  }
  Octets other_nonce = nonce;
  other_nonce[11] ^= 1;
  Octets other_associated = associated;
  other_associated[0] ^= 1;
  Octets bytes = sealed;
  CHECK(gcm.open(other_nonce, associated, bytes) == MBEDTLS_ERR_GCM_AUTH_FAILED);
  bytes = sealed;
  CHECK(gcm.open(nonce, other_associated, bytes) == MBEDTLS_ERR_GCM_AUTH_FAILED);
  bytes = sealed;
  CHECK(gcm.open(nonce, associated, bytes) == 0);
}

TEST_CASE("AES-GCM of TLS: of every length, one after the other with one key") {
  Gcm gcm(octets_of_hex(kAnswers[0].key));
  Octets nonce = octets_of_hex(kNonce);
  for (std::size_t bytes = 0; bytes < 200; ++bytes) {
    nonce[0] = static_cast<unsigned char>(bytes);
    Octets plain(bytes);
    for (std::size_t i = 0; i < bytes; ++i) plain[i] = static_cast<unsigned char>(i * 7 + bytes);
    const Octets associated(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(bytes / 3));
    Octets sealed = gcm.seal(nonce, associated, plain);
    if (bytes >= 8) CHECK(!std::equal(plain.begin(), plain.end(), sealed.begin()));
    CHECK(gcm.open(nonce, associated, sealed) == 0);
    CHECK(sealed == plain);
  }
}

TEST_CASE("AES-GCM of TLS: keys of other lengths are refused") {
  mbedtls_gcm_context context;
  mbedtls_gcm_init(&context);
  const Octets key(64);
  for (const unsigned bits : {0u, 64u, 129u, 512u}) {
    CHECK(mbedtls_gcm_setkey(&context, MBEDTLS_CIPHER_ID_AES, key.data(), bits) != 0);
  }
  mbedtls_gcm_free(&context);
}

TEST_CASE("ciphers: AES goes first where it is fast, ChaCha20 where not, the same are offered") {
  const auto names_of = [](const int* ciphers) {
    std::vector<std::string> names;
    for (; *ciphers != 0; ++ciphers) {
      names.emplace_back(mbedtls_ssl_get_ciphersuite_name(*ciphers));
    }
    return names;
  };
  std::vector<std::string> fast = names_of(edgecase::tls::preferred_ciphers(true));
  std::vector<std::string> slow = names_of(edgecase::tls::preferred_ciphers(false));
  CHECK(fast.front().find("AES-128-GCM") != std::string::npos);
  CHECK(slow.front().find("CHACHA20-POLY1305") != std::string::npos);
  std::sort(fast.begin(), fast.end());
  std::sort(slow.begin(), slow.end());
  CHECK(fast == slow);
  CHECK(std::adjacent_find(fast.begin(), fast.end()) == fast.end());
  for (const std::string& name : fast) CHECK(name.starts_with("TLS-ECDHE-"));
}
