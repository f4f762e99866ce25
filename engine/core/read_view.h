// The view of readers. ReadView: memtables and tables of a moment. Range deletes among them hide
// entries; Revocations counts what goes while somebody reads. Views holds what is seen now.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "buffer/memtable.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "version/version.h"
#include "version/version_set.h"

namespace edgecase::engine {

// Revocations counts what became unreadable for good while somebody reads: erased ranges, rules
// that were made shorter, evictions, dropped namespaces. It also counts readers of old versions who
// keep bytes of these, or of what has expired, from going. A reader compares the count, one atomic
// load a step, and looks anew at what is hidden when it has changed. Thread-safe. engine/README.md,
// "Erase".
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

// The memtables and tables that a read looks at. Immutable and shared; it keeps its memtables in
// memory, and the tables of its version on the drives.
//
// Invariant: every entry in an immutable memtable or a table was visible to all before the view
// came to be; only the active memtable holds entries that a read must not see yet.
struct ReadView {
  std::shared_ptr<Memtable> active;
  std::vector<std::shared_ptr<Memtable>> immutables;  // newest first
  std::shared_ptr<const Version> version;
};

struct VisibleView {
  std::shared_ptr<const ReadView> view;
  SequenceNumber visible = 0;
  // What was erased since, whatever is visible: null for none.
  std::shared_ptr<const RangeDeleteLayers> erased = nullptr;
  // Scans and counts show nothing but what is newer.
  SequenceNumber newer_than = 0;
};

class EngineSnapshot final : public Snapshot {
 public:
  // `revocations`: as counted before `at` was looked at.
  EngineSnapshot(std::shared_ptr<const void> generation, VisibleView at, std::uint64_t revocations)
      : generation_(std::move(generation)), at_(std::move(at)), revocations_(revocations) {}
  const VisibleView& at() const { return at_; }
  std::uint64_t revocations() const override { return revocations_; }
  CommitPosition committed() const override { return at_.visible; }
  bool keeps_memory() const override {
    const ReadView& view = *at_.view;
    return view.active->is_written_out() ||
           std::any_of(view.immutables.begin(), view.immutables.end(),
                       [](const auto& memtable) { return memtable->is_written_out(); });
  }

 private:
  std::shared_ptr<const void> generation_;
  VisibleView at_;
  const std::uint64_t revocations_;
};

// HiddenRanges: the range deletes of a view, as reads ask whether one hides an entry. It costs
// nothing where there are none.

// For one entry that was found.
inline bool is_hidden(const VisibleView& at, ByteView full_key, SequenceNumber sequence) {
  const auto hides = [&](const auto& deletes) {
    return deletes.covering(full_key, at.visible) > sequence;
  };
  if (at.erased && at.erased->covering(full_key, UINT64_MAX) > sequence) return true;
  const ReadView& view = *at.view;
  if (const auto deletes = view.active->range_deletes(); deletes && hides(*deletes)) return true;
  for (const auto& memtable : view.immutables) {
    if (const auto deletes = memtable->range_deletes(); deletes && hides(*deletes)) return true;
  }
  return view.version->range_deletes && hides(*view.version->range_deletes);
}

// For many: holds what the view has of them.
class HiddenRanges {
 public:
  explicit HiddenRanges(const VisibleView& at) : visible_(at.visible), erased_(at.erased) {
    take(at.view->active->range_deletes());
    for (const auto& memtable : at.view->immutables) take(memtable->range_deletes());
    flushed_ = at.view->version->range_deletes;
  }

  bool empty() const { return recent_.empty() && flushed_ == nullptr && erased_ == nullptr; }
  bool hides(ByteView full_key, SequenceNumber sequence) const {
    if (erased_ != nullptr && erased_->covering(full_key, UINT64_MAX) > sequence) return true;
    if (flushed_ != nullptr && flushed_->covering(full_key, visible_) > sequence) return true;
    return std::any_of(recent_.begin(), recent_.end(), [&](const auto& deletes) {
      return deletes->covering(full_key, visible_) > sequence;
    });
  }
  // Whether some key of [first, last] may be hidden.
  bool touches(ByteView first, ByteView last) const {
    if (erased_ != nullptr && erased_->touches(first, last, 0)) return true;
    if (flushed_ != nullptr && flushed_->touches(first, last, 0)) return true;
    return std::any_of(recent_.begin(), recent_.end(),
                       [&](const auto& deletes) { return deletes->touches(first, last, 0); });
  }

 private:
  void take(std::shared_ptr<const RangeDeleteLayers> deletes) {
    if (deletes != nullptr) recent_.push_back(std::move(deletes));
  }

  SequenceNumber visible_;
  std::shared_ptr<const RangeDeleteLayers> erased_;
  std::vector<std::shared_ptr<const RangeDeleteLayers>> recent_;  // of memtables
  std::shared_ptr<const RangeDeletes> flushed_;
};

// Views holds what readers see now: memtables, tables, the newest visible entry, and the ranges
// that are erased for good. Readers take it whole (now()), and keep what they took alive.
//
// Threads. Readers: any. The commit leader shows entries and turns memtables over; the flush lane
// retires them once they are in tables; whoever changed the current version publishes it. The mutex
// is held for a few copies of pointers, never across I/O; VersionSet's is taken under it, so that
// of two who publish the later one shows the later version.
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
