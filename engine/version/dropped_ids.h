// Ids of namespaces that were dropped. Ids are never used again, so that one that is here stays.
// One writer at a time; readers beside it without a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "edgecase/write_batch.h"

namespace edgecase::engine {

class DroppedIds {
 public:
  bool empty() const { return words_.load(std::memory_order_acquire) == nullptr; }

  bool contains(NamespaceId id) const {
    const Words* words = words_.load(std::memory_order_acquire);
    const std::size_t at = id / kWordBits;
    if (words == nullptr || at >= words->count) return false;
    return (words->bits[at].load(std::memory_order_acquire) >> id % kWordBits & 1) != 0;
  }

  void insert(NamespaceId id) {
    const std::size_t at = id / kWordBits;
    const Words* words = words_.load(std::memory_order_relaxed);
    if (words == nullptr || at >= words->count) words = grow(words, at + 1);
    words->bits[at].fetch_or(std::uint64_t{1} << id % kWordBits, std::memory_order_release);
  }

 private:
  static constexpr std::size_t kWordBits = 64;

  struct Words {
    std::size_t count = 0;
    std::unique_ptr<std::atomic<std::uint64_t>[]> bits;
  };

  // The smaller table stays: a reader may be in it.
  const Words* grow(const Words* old, std::size_t count_min) {
    auto words = std::make_unique<Words>();
    words->count = std::max<std::size_t>({count_min, old == nullptr ? 0 : 2 * old->count, 16});
    words->bits = std::make_unique<std::atomic<std::uint64_t>[]>(words->count);
    for (std::size_t i = 0; old != nullptr && i < old->count; ++i)
      words->bits[i].store(old->bits[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    all_.push_back(std::move(words));
    words_.store(all_.back().get(), std::memory_order_release);
    return all_.back().get();
  }

  std::vector<std::unique_ptr<const Words>> all_;
  std::atomic<const Words*> words_{nullptr};
};

}  // namespace edgecase::engine
