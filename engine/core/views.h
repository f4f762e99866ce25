// Views holds what readers see now: memtables, tables, the newest visible entry, and the ranges
// that are erased for good. Readers take it whole (now()), and keep what they took alive.
//
// Threads. Readers: any. The commit leader shows entries and turns memtables over; the flush lane
// retires them once they are in tables; whoever changed the current version publishes it. The mutex
// is held for a few copies of pointers, never across I/O; VersionSet's is taken under it, so that
// of two who publish the later one shows the later version.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/range_deletes.h"
#include "core/read_view.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "version/version_set.h"

namespace edgecase::engine {

class Views {
 public:
  // `active` is the first memtable. `versions` outlives it.
  Views(const VersionSet& versions, std::shared_ptr<Memtable> active);

  VisibleView now() const EC_EXCLUDES(mutex_);
  SequenceNumber visible() const { return visible_.load(std::memory_order_acquire); }

  // The leader's. Everything up to `through` is visible from here on.
  void show(SequenceNumber through) { visible_.store(through, std::memory_order_release); }
  // The leader's. The active memtable becomes immutable, and visible up to its `last_sequence`:
  // flushed tables keep no older entries.
  void rotate(std::shared_ptr<Memtable> fresh, SequenceNumber last_sequence) EC_EXCLUDES(mutex_);

  // Memtables that wait to be written out. Without the lock.
  std::size_t immutable_count() const { return immutables_.load(std::memory_order_acquire); }
  std::uint64_t immutable_bytes() const;
  // The flush lane's. The one to write out next; null: none waits.
  std::shared_ptr<Memtable> oldest_immutable() const EC_EXCLUDES(mutex_);
  // The flush lane's. The tables of the current version hold what is in it.
  void retire_oldest() EC_EXCLUDES(mutex_);
  // Shows the current version.
  void publish() EC_EXCLUDES(mutex_);

  // Memtables that are written out and that snapshots or iterators still hold.
  std::vector<std::shared_ptr<const Memtable>> kept_memtables() const EC_EXCLUDES(mutex_);
  std::uint64_t kept_memtable_bytes() const;

  // Hides a range from every view, older ones included, until forget_erased().
  void hide_for_good(const RangeDelete& erased) EC_EXCLUDES(mutex_);
  // No byte is left of what was erased up to `through`.
  void forget_erased(SequenceNumber through) EC_EXCLUDES(mutex_);
  // Null: none. Snapshots that are held do not know of them.
  std::shared_ptr<const RangeDeleteLayers> erased() const EC_EXCLUDES(mutex_);
  std::vector<RangeDelete> erased_ranges() const EC_EXCLUDES(mutex_);
  bool has_erased() const { return has_erased_.load(std::memory_order_acquire); }

  void add_to(Stats& stats) const;

 private:
  // As many are not made disjoint before somebody asks.
  static constexpr std::size_t kErasedLogMin = 512;

  void set_view(std::shared_ptr<const ReadView> view) EC_REQUIRES(mutex_);

  const VersionSet& versions_;
  std::atomic<SequenceNumber> visible_{0};
  std::atomic<std::size_t> immutables_{0};  // stored under mutex_
  std::atomic<bool> has_erased_{false};     // the same
  mutable Mutex mutex_;
  std::shared_ptr<const ReadView> view_ EC_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const Memtable>> retired_ EC_GUARDED_BY(mutex_);
  mutable RangeDeleteLog erased_log_ EC_GUARDED_BY(mutex_);
  std::size_t erased_log_min_ EC_GUARDED_BY(mutex_) = kErasedLogMin;
};

}  // namespace edgecase::engine
