// The order of a memtable, made when somebody asks for it: entries written since the last time are
// sorted into a run, and runs of similar size are merged, so that there are few and an entry is
// moved only a logarithmic number of times. Writers pay nothing. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "buffer/memtable_node.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

// By full key; among equal keys the newest first.
using SortedRun = std::vector<const MemtableNode*>;

class SortedRuns {
 public:
  // Runs that together hold every node reached from `oldest` whose sequence is at most `visible`
  // (and maybe newer ones), and that is newer than `newer_than` (and maybe others). `oldest` is the
  // same at every call; the first makes room for `expected` nodes.
  std::vector<std::shared_ptr<const SortedRun>> through(const MemtableNode* oldest,
                                                        SequenceNumber visible,
                                                        std::uint64_t expected,
                                                        SequenceNumber newer_than = 0);

  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  void add_run(SortedRun run) EC_REQUIRES(mutex_);
  std::vector<std::shared_ptr<const SortedRun>> newer_runs(SequenceNumber newer_than) const
      EC_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<std::shared_ptr<const SortedRun>> runs_ EC_GUARDED_BY(mutex_);  // old to new
  std::vector<SequenceNumber> newest_ EC_GUARDED_BY(mutex_);                  // of runs_
  const MemtableNode* covered_ EC_GUARDED_BY(mutex_) = nullptr;  // the newest node in a run
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace edgecase::engine
