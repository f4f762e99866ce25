#include "crypto/aes_gcm.h"

#include <mbedtls/gcm.h>
#include <mbedtls/version.h>

#include <cstring>
#include <string_view>

#include "base/check.h"

namespace edgecase::engine {
namespace {

const unsigned char* as_input(const char* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* as_output(char* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}

}  // namespace

struct AesGcm::Context {
  Context() { mbedtls_gcm_init(&gcm); }
  ~Context() { mbedtls_gcm_free(&gcm); }  // wipes the key
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  mbedtls_gcm_context gcm;
};

AesGcm::AesGcm(const SecretKey& key) : context_(std::make_unique<Context>()) {
  EC_CHECK(mbedtls_gcm_setkey(&context_->gcm, MBEDTLS_CIPHER_ID_AES, key.data(), 256) == 0);
}
AesGcm::~AesGcm() = default;
AesGcm::AesGcm(AesGcm&&) noexcept = default;
AesGcm& AesGcm::operator=(AesGcm&&) noexcept = default;

void AesGcm::seal(const GcmNonce& nonce, ByteView associated, ByteView plain, char* out) {
  // The library fails for sizes alone, of which ours are far from the limits.
  EC_CHECK(mbedtls_gcm_crypt_and_tag(&context_->gcm, MBEDTLS_GCM_ENCRYPT, plain.size(),
                                     nonce.data(), nonce.size(), as_input(associated.data()),
                                     associated.size(), as_input(plain.data()), as_output(out),
                                     kGcmTagBytes, as_output(out + plain.size())) == 0);
}

bool AesGcm::open(const GcmNonce& nonce, ByteView associated, ByteView sealed, char* out) {
  if (sealed.size() < kGcmTagBytes) return false;
  const std::size_t size = sealed.size() - kGcmTagBytes;
  unsigned char tag[kGcmTagBytes];
  std::memcpy(tag, sealed.data() + size, sizeof tag);
  return mbedtls_gcm_auth_decrypt(&context_->gcm, size, nonce.data(), nonce.size(),
                                  as_input(associated.data()), associated.size(), tag, sizeof tag,
                                  as_input(sealed.data()), as_output(out)) == 0;
}

void AesGcm::begin_sealing(const GcmNonce& nonce, ByteView associated) {
  mbedtls_gcm_context* gcm = &context_->gcm;
#if MBEDTLS_VERSION_MAJOR >= 3
  EC_CHECK(mbedtls_gcm_starts(gcm, MBEDTLS_GCM_ENCRYPT, nonce.data(), nonce.size()) == 0);
  EC_CHECK(mbedtls_gcm_update_ad(gcm, as_input(associated.data()), associated.size()) == 0);
#else
  EC_CHECK(mbedtls_gcm_starts(gcm, MBEDTLS_GCM_ENCRYPT, nonce.data(), nonce.size(),
                              as_input(associated.data()), associated.size()) == 0);
#endif
}

void AesGcm::seal_piece(char* piece, std::size_t size) {
#if MBEDTLS_VERSION_MAJOR >= 3
  std::size_t written = 0;
  EC_CHECK(mbedtls_gcm_update(&context_->gcm, as_input(piece), size, as_output(piece), size,
                              &written) == 0 &&
           written == size);
#else
  EC_CHECK(mbedtls_gcm_update(&context_->gcm, size, as_input(piece), as_output(piece)) == 0);
#endif
}

std::array<char, kGcmTagBytes> AesGcm::finish_sealing() {
  std::array<char, kGcmTagBytes> tag{};
#if MBEDTLS_VERSION_MAJOR >= 3
  std::size_t written = 0;
  EC_CHECK(mbedtls_gcm_finish(&context_->gcm, nullptr, 0, &written, as_output(tag.data()),
                              tag.size()) == 0);
#else
  EC_CHECK(mbedtls_gcm_finish(&context_->gcm, as_output(tag.data()), tag.size()) == 0);
#endif
  return tag;
}

// Test case 15 of the mode's specification: a key, a nonce, 64 bytes, no associated data.
Status test_aes_gcm() {
  constexpr SecretKey kKey = {0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f,
                              0x94, 0x67, 0x30, 0x83, 0x08, 0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65,
                              0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08};
  constexpr GcmNonce kNonce = {0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce,
                               0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88};
  constexpr std::array<std::uint8_t, 64> kPlain = {
      0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf,
      0xf5, 0x26, 0x9a, 0x86, 0xa7, 0xa9, 0x53, 0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c,
      0x30, 0x3d, 0x8a, 0x31, 0x8a, 0x72, 0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09,
      0x53, 0x2f, 0xcf, 0x0e, 0x24, 0x49, 0xa6, 0xb5, 0x25, 0xb1, 0x6a, 0xed, 0xf5,
      0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39, 0x1a, 0xaf, 0xd2, 0x55};
  constexpr std::array<std::uint8_t, 16> kTag = {0xb0, 0x94, 0xda, 0xc5, 0xd9, 0x34, 0x71, 0xbd,
                                                 0xec, 0x1a, 0x50, 0x22, 0x70, 0xe3, 0xcc, 0x6c};
  AesGcm gcm(kKey);
  const ByteView plain(reinterpret_cast<const char*>(kPlain.data()), kPlain.size());
  Bytes sealed(plain.size() + kGcmTagBytes, '\0');
  gcm.seal(kNonce, {}, plain, sealed.data());
  Bytes opened(plain.size(), '\0');
  const bool right = std::memcmp(sealed.data() + plain.size(), kTag.data(), kTag.size()) == 0 &&
                     gcm.open(kNonce, {}, sealed, opened.data()) && opened == plain;
  sealed[0] = static_cast<char>(sealed[0] ^ 1);
  if (!right || gcm.open(kNonce, {}, sealed, opened.data()))
    return unsupported("AES-256-GCM of this machine's library computes wrongly");
  return ok();
}

}  // namespace edgecase::engine
