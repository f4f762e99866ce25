// Reads: each takes one view of the store and answers from it (reader.h does the looking).
// Threads: any. It waits for the drives alone and has no lock of its own; what iterators and
// snapshots took they keep alive.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "compaction/compactor.h"
#include "core/reader.h"
#include "core/store.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "scrub/scrubber.h"

namespace edgecase::engine {

// Tells when every snapshot that was taken before some moment has gone. Thread-safe.
class SnapshotGenerations {
 public:
  // A snapshot takes it before it looks at the store, and holds it as long as it is there itself.
  std::shared_ptr<const void> current() const {
    MutexLock lock(mutex_);
    return current_;
  }
  // Begins another; expires once nobody holds the one until now, or one before it.
  std::weak_ptr<const void> turn() {
    auto next = std::make_shared<Generation>();
    MutexLock lock(mutex_);
    current_->next = next;
    return std::exchange(current_, std::move(next));
  }

 private:
  // Each keeps those that follow.
  struct Generation {
    std::shared_ptr<const Generation> next;
  };
  mutable Mutex mutex_;
  std::shared_ptr<Generation> current_ EC_GUARDED_BY(mutex_) = std::make_shared<Generation>();
};

class ReadPath {
 public:
  // All outlive it.
  ReadPath(const Store& store, Compactor& compactor, Scrubber& scrubber)
      : store_(store), compactor_(compactor), scrubber_(scrubber) {}

  // As those of Engine.
  Result<Bytes> get(NamespaceId namespace_id, ByteView key, const ReadOptions& options);
  Result<std::unique_ptr<Iterator>> scan(NamespaceId namespace_id, const KeyRange& range,
                                         const ReadOptions& options);
  Result<RangeStats> range_stats(NamespaceId namespace_id, const KeyRange& range,
                                 const ReadOptions& options);
  Status summarize(NamespaceId namespace_id, const KeyRange& range, std::size_t prefix_bytes,
                   const ReadOptions& options, const PrefixTaker& take);
  Result<std::uint64_t> approximate_size(NamespaceId namespace_id, const KeyRange& range);
  Result<std::vector<FileShare>> locate(NamespaceId namespace_id, const KeyRange& range);
  std::shared_ptr<const Snapshot> snapshot();
  std::weak_ptr<const void> held_snapshots() { return generations_.turn(); }
  bool is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                  std::uint64_t since) const;

  void add_to(ReadStats& stats) const;

 private:
  Status check_readable(NamespaceId id) const;
  VisibleView view_for(const ReadOptions& options) const;
  // What an iterator does not show any more.
  Status renew_hidden(NamespaceId id, VisibleView& at, ExpiryView& expiry) const;
  // A file that is not there is no missing key: either its drive is gone, or the store is damaged.
  Status explain(Status failure) const;

  const Store store_;
  Compactor& compactor_;
  Scrubber& scrubber_;  // is told of damage
  SnapshotGenerations generations_;
  std::atomic<std::uint64_t> gets_{0};
  HitCounters hits_;
};

}  // namespace edgecase::engine
