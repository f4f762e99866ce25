// Memory for zlib, as z_stream's zalloc and zfree, and for zstd, as ZSTD_customMem: it holds what
// was packed or unpacked, and is wiped when it is given back, as all is that C++ gives back. Any
// thread.
#pragma once

#include <cstddef>
#include <new>

namespace edgecase::wire {

inline void* allocate_for_zlib(void* /*opaque*/, unsigned items, unsigned size) {
  return ::operator new (std::size_t{items} * size, std::nothrow);
}
inline void* allocate_for_zstd(void* /*opaque*/, std::size_t size) {
  return ::operator new(size, std::nothrow);
}
inline void give_back_for_codec(void* /*opaque*/, void* memory) {
  ::operator delete(memory);
}

}  // namespace edgecase::wire
