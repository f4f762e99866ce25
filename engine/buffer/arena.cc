#include "buffer/arena.h"

#include <algorithm>

#include "base/check.h"

namespace edgecase::engine {

char* Arena::allocate(std::size_t size) {
  size = rounded(size);
  if (size > free_bytes_) {
    // The rest of the current block stays in use: a large entry between small ones wastes nothing.
    if (size > next_block_bytes_ / kLargeFraction) return new_block(size);
    free_bytes_ = next_block_bytes_;
    free_ = new_block(free_bytes_);
    next_block_bytes_ = std::min(2 * next_block_bytes_, kBlockMaxBytes);
  }
  char* taken = free_;
  free_ += size;
  free_bytes_ -= size;
  return taken;
}

void Arena::take_back(std::size_t size) {
  EC_CHECK(size <= kSmallMaxBytes);
  free_ -= rounded(size);
  free_bytes_ += rounded(size);
}

char* Arena::new_block(std::size_t size) {
  blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
  used_.fetch_add(size, std::memory_order_relaxed);
  return blocks_.back().get();
}

}  // namespace edgecase::engine
