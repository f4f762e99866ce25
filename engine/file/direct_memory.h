// Memory for reads and writes past the page cache (O_DIRECT).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace edgecase::engine {

// The alignment of memory, sizes and offsets in files: no drive in use asks for more.
inline constexpr std::uint64_t kDirectBlockBytes = 4096;

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};
using DirectMemory = std::unique_ptr<char, FreeMemory>;

// Whole blocks; null when there is no memory.
inline DirectMemory take_direct_memory(std::uint64_t bytes) {
  return DirectMemory(static_cast<char*>(std::aligned_alloc(kDirectBlockBytes, bytes)));
}

}  // namespace edgecase::engine
