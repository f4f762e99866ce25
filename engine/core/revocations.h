// Revocations counts what became unreadable for good while somebody reads: erased ranges, rules
// that were made shorter, evictions, dropped namespaces. It also counts readers of old versions who
// keep bytes of these, or of what has expired, from going. A reader compares the count, one atomic
// load a step, and looks anew at what is hidden when it has changed. Thread-safe. engine/README.md,
// "Erase".
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "base/entry.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

class Revocations {
 public:
  // How many of the ranges that were erased last are known one by one.
  static constexpr std::size_t kRangesMax = 4096;

  std::uint64_t count() const { return count_.load(std::memory_order_acquire); }

  // After it was hidden: whoever sees the count finds it so.
  void note() { count_.fetch_add(1, std::memory_order_acq_rel); }
  // Notes a range of full keys; `upper` is not empty. They are kept: they must not hold names.
  void note_erased(const Bytes& lower, const Bytes& upper) {
    MutexLock lock(mutex_);
    ranges_.push_back({count_.load(std::memory_order_relaxed) + 1, lower, upper});
    if (ranges_.size() > kRangesMax) {
      forgotten_through_ = ranges_.front().count;
      ranges_.pop_front();
    }
    note();
  }
  // Whether something of [first, last], full keys, was erased after the count was `since`. True as
  // well where that is not known any more.
  bool has_erased(ByteView first, ByteView last, std::uint64_t since) const {
    if (count() == since) return false;
    MutexLock lock(mutex_);
    if (forgotten_through_ > since) return true;
    for (auto range = ranges_.rbegin(); range != ranges_.rend() && range->count > since; ++range)
      if (ByteView(range->lower) <= last && first < ByteView(range->upper)) return true;
    return false;
  }

 private:
  struct Range {
    std::uint64_t count = 0;
    Bytes lower;
    Bytes upper;
  };

  std::atomic<std::uint64_t> count_{0};
  mutable Mutex mutex_;
  std::deque<Range> ranges_ EC_GUARDED_BY(mutex_);  // oldest first
  std::uint64_t forgotten_through_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::engine
