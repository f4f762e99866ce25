// Bytes that occur nowhere else, to be looked for on drives.
#pragma once

#include <string>

#include "edgecase/machine.h"

namespace edgecase::test {

// A secret of the entry `i`, in its key and in its value; nothing else has these bytes.
inline std::string secret(const char* kind, int i) {
  std::uint64_t state = static_cast<std::uint64_t>(i) * 2 + (kind[0] == 'k' ? 1 : 0);
  SeededRandom random(0x5ec4e7 + state);
  std::string bytes;
  // Different bytes, so many that hardly four in a row are said twice: compression leaves them as
  // they are.
  for (int n = 0; n < 17; ++n) bytes.push_back(static_cast<char>(128 + random.below(128)));
  return bytes;
}

}  // namespace edgecase::test
