#include "crypto/key_derivation.h"

#include <mbedtls/hkdf.h>
#include <mbedtls/md.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/coding.h"

namespace edgecase::engine {
namespace {

const unsigned char* as_input(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

const mbedtls_md_info_t* sha256() {
  return mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);
}

}  // namespace

SecretKey derive_key(const SecretKey& key, ByteView salt, std::string_view purpose) {
  SecretKey derived;
  // The library fails for sizes alone.
  EC_CHECK(mbedtls_hkdf(sha256(), as_input(salt), salt.size(), key.data(), key.size(),
                        as_input(purpose), purpose.size(), derived.data(), derived.size()) == 0);
  return derived;
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
  SecretKey number;
  EC_CHECK(mbedtls_md_hmac(sha256(), seed_.data(), seed_.size(),
                           reinterpret_cast<const unsigned char*>(counter), sizeof counter,
                           number.data()) == 0);
  return number;
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
