// Rings when readings have become durable, for who goes on with them. Thread-safe; outlives those
// that wait and those that ring. Ringing costs two atomic operations while nobody waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "edgecase/mutex.h"

namespace edgecase::ingest {

class CommitBell {
 public:
  void ring() EC_EXCLUDES(mutex_) {
    rings_.fetch_add(1);
    if (waiting_.load() == 0) return;
    const MutexLock lock(mutex_);
    rung_.notify_all();
  }
  // To be taken before it is looked whether there is something to do.
  std::uint64_t rings() const { return rings_.load(); }
  // Until it has rung since it was `seen`, or so long. True: it has.
  bool wait(std::uint64_t seen, std::int64_t timeout_ns) EC_EXCLUDES(mutex_) {
    const auto until = CondVar::deadline_in(timeout_ns);
    MutexLock lock(mutex_);
    waiting_.fetch_add(1);
    while (rings_.load() == seen && rung_.wait_until(mutex_, until)) continue;
    waiting_.fetch_sub(1);
    return rings_.load() != seen;
  }

 private:
  std::atomic<std::uint64_t> rings_{0};
  std::atomic<std::uint32_t> waiting_{0};
  // Held from looking at rings_ to waiting, so that no ring is missed between.
  Mutex mutex_;
  CondVar rung_;
};

}  // namespace edgecase::ingest
