// Pacer slows writers down, so that they come to rest at the rate that flushes and merges keep up
// with, and need not stop. It asks a pause a byte, which grows with the square of how far flushes
// and merges are behind. Each namespace pays by what it writes (fair_pace.h).
//
// Threads. look(): any, after each flush and merge and when a memtable is full. price(): the commit
// leader, of the group it has written. keep(): each writer, once others may lead again: it waits
// there, for kPauseMaxNs at most. The mutex is held for arithmetic alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "compaction/compactor.h"
#include "core/commit_queue.h"
#include "core/fair_pace.h"
#include "core/garbage_limit.h"
#include "core/store.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

class Pacer {
 public:
  // Both outlive it.
  Pacer(const Store& store, const Compactor& compactor) : store_(store), compactor_(compactor) {}

  // Asks anew how far merges are behind. `flushed_bytes`: what flushes wrote so far.
  void look(std::uint64_t flushed_bytes) EC_EXCLUDES(mutex_);
  // Says to each writer of the group when it may be answered.
  void price(std::span<CommitQueue::Writer* const> group, const Memtable& active)
      EC_REQUIRES(leading);
  // Waits until then, or a part of it: many short pauses, none that is long.
  void keep(std::int64_t answer_not_before_ns) EC_EXCLUDES(mutex_);

  // A writer stood still for so long.
  void add_stall(std::int64_t ns) {
    stall_ns_.fetch_add(static_cast<std::uint64_t>(ns), std::memory_order_relaxed);
  }
  std::uint64_t stall_ns() const { return stall_ns_.load(std::memory_order_relaxed); }

 private:
  double debt_of_merges(std::uint64_t flushed_bytes);
  double pause_for_memory(const Memtable& active) const;

  const Store store_;
  const Compactor& compactor_;
  FairPace accounts_ EC_GUARDED_BY(leading);
  std::atomic<double> ns_per_byte_{0};  // for merges
  std::atomic<std::uint64_t> stall_ns_{0};
  Mutex mutex_;
  GarbageLimit garbage_limit_ EC_GUARDED_BY(mutex_);
  CondVar pause_;  // nobody notifies it
};

}  // namespace edgecase::engine
