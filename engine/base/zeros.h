// Zeros: what of a file was never written, or has been written over. Many bytes at a time.
#pragma once

#include <cstddef>
#include <cstring>

#include "edgecase/bytes.h"

namespace edgecase::engine {

inline bool all_zero(ByteView bytes) {
  return bytes.empty() || (bytes.front() == '\0' &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Where the first byte lies that is not zero; bytes.size() when there is none.
inline std::size_t first_nonzero(ByteView bytes) {
  constexpr std::size_t kPieceBytes = 256;
  std::size_t at = 0;
  while (at + kPieceBytes <= bytes.size() && all_zero(bytes.substr(at, kPieceBytes)))
    at += kPieceBytes;
  while (at < bytes.size() && bytes[at] == '\0') ++at;
  return at;
}

}  // namespace edgecase::engine
