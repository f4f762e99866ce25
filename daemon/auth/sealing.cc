#include "auth/sealing.h"

#include <nettle/gcm.h>

#include <array>
#include <cstring>  // explicit_bzero

namespace edgecase::auth {
namespace {

constexpr std::size_t kTagBytes = 16;

const std::uint8_t* octets_of(ByteView view) {
  return static_cast<const std::uint8_t*>(static_cast<const void*>(view.data()));
}
std::uint8_t* octets_of(Bytes& bytes) {
  return static_cast<std::uint8_t*>(static_cast<void*>(bytes.data()));
}

class Gcm {
 public:
  Gcm(ByteView key, std::uint64_t number) {
    gcm_aes256_set_key(&context_, octets_of(key));
    std::array<std::uint8_t, GCM_IV_SIZE> nonce{};
    for (std::size_t i = 0; i < sizeof number; ++i)
      nonce[i] = static_cast<std::uint8_t>(number >> (8 * i));
    gcm_aes256_set_iv(&context_, nonce.size(), nonce.data());
  }
  ~Gcm() { explicit_bzero(&context_, sizeof context_); }
  Gcm(const Gcm&) = delete;
  Gcm& operator=(const Gcm&) = delete;

  gcm_aes256_ctx* get() { return &context_; }
  std::array<std::uint8_t, kTagBytes> tag() {
    std::array<std::uint8_t, kTagBytes> tag{};
    gcm_aes256_digest(&context_, tag.size(), tag.data());
    return tag;
  }

 private:
  gcm_aes256_ctx context_{};
};

}  // namespace

Bytes make_seal_key(Random& random) {
  Bytes key;
  while (key.size() < kSealKeyBytes) {
    const std::uint64_t more = random.next();
    key.append(static_cast<const char*>(static_cast<const void*>(&more)), sizeof more);
  }
  return key;
}

Bytes seal(ByteView key, std::uint64_t number, ByteView text) {
  Gcm gcm(key, number);
  Bytes sealed(text.size(), '\0');
  gcm_aes256_encrypt(gcm.get(), text.size(), octets_of(sealed), octets_of(text));
  const auto tag = gcm.tag();
  sealed.append(static_cast<const char*>(static_cast<const void*>(tag.data())), tag.size());
  return sealed;
}

Result<Bytes> open_sealed(ByteView key, std::uint64_t number, ByteView sealed) {
  if (key.size() != kSealKeyBytes || sealed.size() < kTagBytes)
    return corruption("what was sealed is cut");
  const std::size_t size = sealed.size() - kTagBytes;
  Gcm gcm(key, number);
  Bytes text(size, '\0');
  gcm_aes256_decrypt(gcm.get(), size, octets_of(text), octets_of(sealed));
  const auto tag = gcm.tag();
  unsigned difference = 0;
  for (std::size_t i = 0; i < kTagBytes; ++i)
    difference |= static_cast<unsigned>(tag[i] ^ static_cast<unsigned char>(sealed[size + i]));
  if (difference != 0) return corruption("what was sealed is not what was written");
  return text;
}

}  // namespace edgecase::auth
