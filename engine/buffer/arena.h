// Memory that is taken piece by piece and given back all at once, with its owner.
// Written by one thread; used_bytes() by any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace edgecase::engine {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `size` bytes, aligned for a 64-bit number, not initialised; valid as long as the arena.
  char* allocate(std::size_t size);
  // Takes back the last allocate(), of kSmallMaxBytes at most, which nobody uses.
  void take_back(std::size_t size);
  static constexpr std::size_t kSmallMaxBytes = 2048;

  // Everything taken from the system, unused ends of blocks included.
  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  static std::size_t rounded(std::size_t size) {
    constexpr std::size_t kAlignment = alignof(std::uint64_t);
    return (size + kAlignment - 1) & ~(kAlignment - 1);
  }
  char* new_block(std::size_t size);

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t next_block_bytes_ = kBlockMinBytes;
  std::atomic<std::uint64_t> used_{0};

  // Blocks grow from small, so that an idle store stays small, to a size whose unused end does not
  // matter.
  static constexpr std::size_t kBlockMinBytes = 16u << 10;
  static constexpr std::size_t kBlockMaxBytes = 256u << 10;
  // What is larger than this part of a block gets a block of its own.
  static constexpr std::size_t kLargeFraction = 8;
  static_assert(kSmallMaxBytes <= kBlockMinBytes / kLargeFraction);
};

}  // namespace edgecase::engine
