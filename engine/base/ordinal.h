// The last 8 bytes of a series' key: a big-endian number.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace edgecase::engine {

inline std::uint64_t load_ordinal(const char* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}

inline void store_ordinal(char* bytes, std::uint64_t value) {
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  std::memcpy(bytes, &value, sizeof value);
}

}  // namespace edgecase::engine
