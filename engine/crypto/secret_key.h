// Secrets in memory: they are wiped when they go.
#pragma once

#include <cstring>

#include "edgecase/bytes.h"
#include "edgecase/secret_key.h"

namespace edgecase::engine {

using edgecase::SecretKey;

inline constexpr std::size_t kSecretKeyBytes = 32;
static_assert(sizeof(SecretKey) == kSecretKeyBytes);

inline ByteView bytes_of(const SecretKey& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

// Wipes bytes that hold secrets when it goes. They must not have grown meanwhile: what they outgrew
// would stay.
class WipeAtEnd {
 public:
  explicit WipeAtEnd(Bytes& bytes) : bytes_(bytes) {}
  ~WipeAtEnd() { ::explicit_bzero(bytes_.data(), bytes_.size()); }
  WipeAtEnd(const WipeAtEnd&) = delete;
  WipeAtEnd& operator=(const WipeAtEnd&) = delete;

 private:
  Bytes& bytes_;
};

}  // namespace edgecase::engine
