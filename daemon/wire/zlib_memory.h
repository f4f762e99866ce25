// Memory for zlib, as z_stream's zalloc and zfree: it holds what was packed or unpacked, and is
// wiped when it is given back, as all is that C++ gives back. Any thread.
#pragma once

#include <cstddef>
#include <new>

namespace edgecase::wire {

inline void* allocate_for_zlib(void* /*opaque*/, unsigned items, unsigned size) {
  return ::operator new (std::size_t{items} * size, std::nothrow);
}
inline void give_back_for_zlib(void* /*opaque*/, void* memory) {
  ::operator delete(memory);
}

}  // namespace edgecase::wire
