#include "crypto/aes_gcm.h"

#include <nettle/gcm.h>
#include <nettle/memops.h>

#include <cstring>
#include <new>

namespace edgecase::engine {
namespace {

const std::uint8_t* as_input(const char* bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}
std::uint8_t* as_output(char* bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes);
}

gcm_aes256_ctx* context_of(std::byte* bytes) {
  return std::launder(reinterpret_cast<gcm_aes256_ctx*>(bytes));
}

}  // namespace

AesGcm::AesGcm(const SecretKey& key) {
  static_assert(sizeof(gcm_aes256_ctx) <= kContextBytes && alignof(gcm_aes256_ctx) <= 16);
  static_assert(kSecretKeyBytes == AES256_KEY_SIZE && kGcmBlockBytes == GCM_BLOCK_SIZE);
  static_assert(kGcmNonceBytes == GCM_IV_SIZE && kGcmTagBytes == GCM_DIGEST_SIZE);
  gcm_aes256_set_key(new (context_) gcm_aes256_ctx, key.data());
}

AesGcm::~AesGcm() {
  explicit_bzero(context_, sizeof context_);
}

void AesGcm::begin(const GcmNonce& nonce, ByteView associated) {
  gcm_aes256_ctx* const gcm = context_of(context_);
  gcm_aes256_set_iv(gcm, nonce.size(), nonce.data());
  gcm_aes256_update(gcm, associated.size(), as_input(associated.data()));
}

void AesGcm::seal(const GcmNonce& nonce, ByteView associated, ByteView plain, char* out) {
  begin(nonce, associated);
  gcm_aes256_ctx* const gcm = context_of(context_);
  gcm_aes256_encrypt(gcm, plain.size(), as_output(out), as_input(plain.data()));
  gcm_aes256_digest(gcm, kGcmTagBytes, as_output(out + plain.size()));
}

bool AesGcm::open(const GcmNonce& nonce, ByteView associated, ByteView sealed, char* out) {
  if (sealed.size() < kGcmTagBytes) return false;
  const std::size_t size = sealed.size() - kGcmTagBytes;
  begin(nonce, associated);
  gcm_aes256_ctx* const gcm = context_of(context_);
  gcm_aes256_decrypt(gcm, size, as_output(out), as_input(sealed.data()));
  std::uint8_t tag[kGcmTagBytes];
  gcm_aes256_digest(gcm, sizeof tag, tag);
  return is_same_tag(reinterpret_cast<const char*>(tag), sealed.data() + size);
}

bool is_same_tag(const char* one, const char* other) {
  return memeql_sec(one, other, kGcmTagBytes) != 0;
}

void AesGcm::begin_sealing(const GcmNonce& nonce, ByteView associated) {
  begin(nonce, associated);
}

void AesGcm::seal_piece(ByteView plain, char* out) {
  gcm_aes256_encrypt(context_of(context_), plain.size(), as_output(out), as_input(plain.data()));
}

std::array<char, kGcmTagBytes> AesGcm::finish_sealing() {
  std::array<char, kGcmTagBytes> tag{};
  gcm_aes256_digest(context_of(context_), tag.size(), as_output(tag.data()));
  return tag;
}

void AesGcm::begin_opening(const GcmNonce& nonce, ByteView associated) {
  begin(nonce, associated);
}

void AesGcm::open_piece(ByteView sealed, char* out) {
  gcm_aes256_decrypt(context_of(context_), sealed.size(), as_output(out), as_input(sealed.data()));
}

std::array<char, kGcmTagBytes> AesGcm::tag_so_far() const {
  gcm_aes256_ctx copy;
  std::memcpy(&copy, context_, sizeof copy);
  std::array<char, kGcmTagBytes> tag{};
  gcm_aes256_digest(&copy, tag.size(), as_output(tag.data()));
  explicit_bzero(&copy, sizeof copy);
  return tag;
}

// Test case 15 of the mode's specification: a key, a nonce, 64 bytes, no associated data.
Status compare_aes_gcm(const std::array<std::uint8_t, kGcmTagBytes>& right_tag) {
  const SecretKey key = {0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f,
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
  AesGcm gcm(key);
  const ByteView plain(reinterpret_cast<const char*>(kPlain.data()), kPlain.size());
  Bytes sealed(plain.size() + kGcmTagBytes, '\0');
  gcm.seal(kNonce, {}, plain, sealed.data());
  Bytes opened(plain.size(), '\0');
  const bool right =
      std::memcmp(sealed.data() + plain.size(), right_tag.data(), right_tag.size()) == 0 &&
      gcm.open(kNonce, {}, sealed, opened.data()) && opened == plain;
  sealed[0] = static_cast<char>(sealed[0] ^ 1);
  if (!right || gcm.open(kNonce, {}, sealed, opened.data()))
    return unsupported(
        "AES-256-GCM of this machine's library computes wrongly: nothing is encrypted or opened "
        "with it");
  return ok();
}

Status test_aes_gcm() {
  return compare_aes_gcm(kGcmTestTag);
}

}  // namespace edgecase::engine
