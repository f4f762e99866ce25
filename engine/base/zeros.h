// Zeros: what of a file was never written, or has been written over. Many bytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// Where the first byte lies that is not zero; bytes.size() when there is none.
inline std::size_t first_nonzero(ByteView bytes) {
  constexpr std::size_t kWords = 8;
  const char* const data = bytes.data();
  std::size_t at = 0;
  for (; at + kWords * sizeof(std::uint64_t) <= bytes.size();
       at += kWords * sizeof(std::uint64_t)) {
    std::uint64_t words[kWords];
    std::memcpy(words, data + at, sizeof words);
    if ((words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7]) !=
        0)
      break;
  }
  while (at < bytes.size() && data[at] == '\0') ++at;
  return at;
}

inline bool all_zero(ByteView bytes) {
  return first_nonzero(bytes) == bytes.size();
}

}  // namespace edgecase::engine
