// Bytes that occur nowhere else, to be looked for on drives.
#pragma once

#include <string>

#include "edgecase/random.h"

namespace edgecase::test {

// A secret of the entry `i`, in its key and in its value; nothing else has these bytes.
inline std::string secret(const char* kind, int i) {
  std::uint64_t state = static_cast<std::uint64_t>(i) * 2 + (kind[0] == 'k' ? 1 : 0);
  SeededRandom random(0x5ec4e7 + state);
  std::string bytes = kind;
  for (int n = 0; n < 16; ++n) bytes.push_back(static_cast<char>('A' + random.below(26)));
  return bytes;
}

}  // namespace edgecase::test
