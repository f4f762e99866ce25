// 256 bits that nobody else may know.
#pragma once

#include "edgecase/bytes.h"
#include "edgecase/options.h"

namespace edgecase::engine {

using edgecase::SecretKey;

inline constexpr std::size_t kSecretKeyBytes = std::tuple_size_v<SecretKey>;

inline ByteView bytes_of(const SecretKey& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace edgecase::engine
