// Keys from keys, by HKDF with SHA-256 (RFC 5869), and random numbers that are good for keys.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "crypto/secret_key.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"

namespace edgecase::engine {

inline constexpr std::size_t kSaltBytes = 24;
using KeySalt = std::array<std::uint8_t, kSaltBytes>;

inline ByteView bytes_of(const KeySalt& salt) {
  return {reinterpret_cast<const char*>(salt.data()), salt.size()};
}

// `purpose` keeps apart what is derived from one key for different uses.
SecretKey derive_key(const SecretKey& key, ByteView salt, std::string_view purpose);

// As unpredictable as the 256 bits it takes from `source` when it is made: HMAC-SHA-256 of a
// counter under them. Thread-safe, which `source` need not be.
class SecretRandom {
 public:
  explicit SecretRandom(Random& source);

  SecretKey key();
  KeySalt salt();
  std::uint64_t number();

 private:
  SecretKey next();

  SecretKey seed_{};
  Mutex mutex_;
  std::uint64_t counter_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::engine
