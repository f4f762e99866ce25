// Wipes what calls that have returned left on the stack of a thread, values, names and keys among
// it. A thread does so when it has nothing more to do.
#pragma once

#include <cstddef>
#include <cstring>

namespace edgecase {

// As deep as calls here go, but for few.
inline constexpr std::size_t kWipedStackBytes = 64u << 10;

template <std::size_t kBytes = kWipedStackBytes>
[[gnu::noinline]] void wipe_stack() {
  char dead[kBytes];
  ::explicit_bzero(dead, sizeof dead);
}

}  // namespace edgecase
