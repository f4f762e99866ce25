#include "crypto/key_derivation.h"

#include <nettle/hmac.h>

#include <algorithm>
#include <cstring>

#include "base/coding.h"

namespace edgecase::engine {
namespace {

const std::uint8_t* as_input(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// Leaves nothing of its key behind.
class HmacSha256 {
 public:
  explicit HmacSha256(ByteView key) { set_key(key); }
  ~HmacSha256() { ::explicit_bzero(&context_, sizeof context_); }
  HmacSha256(const HmacSha256&) = delete;
  HmacSha256& operator=(const HmacSha256&) = delete;

  void set_key(ByteView key) { hmac_sha256_set_key(&context_, key.size(), as_input(key)); }
  SecretKey of(ByteView bytes) {
    hmac_sha256_update(&context_, bytes.size(), as_input(bytes));
    SecretKey sum;
    static_assert(sizeof sum == SHA256_DIGEST_SIZE);
    hmac_sha256_digest(&context_, sum.size(), sum.data());
    return sum;
  }

 private:
  hmac_sha256_ctx context_;
};

}  // namespace

// One block is all that a key takes: the loop of the standard is run once.
SecretKey derive_key(const SecretKey& key, ByteView salt, std::string_view purpose) {
  HmacSha256 hmac(salt);
  const SecretKey extracted = hmac.of(bytes_of(key));
  hmac.set_key(bytes_of(extracted));
  Bytes block(purpose);
  block.push_back('\x01');
  return hmac.of(block);
}

SecretRandom::SecretRandom(Random& source) {
  for (std::size_t at = 0; at < seed_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t number = source.next();
    std::memcpy(seed_.data() + at, &number, sizeof number);
  }
}

SecretKey SecretRandom::next() {
  char counter[8];
  {
    MutexLock lock(mutex_);
    encode_fixed64(counter, counter_++);
  }
  return HmacSha256(bytes_of(seed_)).of({counter, sizeof counter});
}

SecretKey SecretRandom::key() {
  return next();
}

KeySalt SecretRandom::salt() {
  const SecretKey number = next();
  KeySalt salt;
  std::copy_n(number.begin(), salt.size(), salt.begin());
  return salt;
}

std::uint64_t SecretRandom::number() {
  const SecretKey number = next();
  return decode_fixed64(reinterpret_cast<const char*>(number.data()));
}

}  // namespace edgecase::engine
