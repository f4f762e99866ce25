// Reads. ReadPath takes one view of the store for each and answers from it; lookups, scans and
// counting over one view are functions here (scan.cc, range_count.cc), stateless and thread-safe as
// TableCache is.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "compaction/compactor.h"
#include "core/merge_cursor.h"
#include "core/read_view.h"
#include "core/store.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "expiry/retention_rules.h"
#include "scrub/scrubber.h"
#include "table/table_cache.h"
#include "table/table_cursor.h"

namespace edgecase::engine {

// [lower, upper) in full keys; an empty `upper` is unbounded.
struct FullKeyRange {
  Bytes lower;
  Bytes upper;

  bool empty() const { return !upper.empty() && lower >= upper; }
};
FullKeyRange full_key_range(NamespaceId id, const KeyRange& range);

// What answered lookups.
struct HitCounters {
  std::atomic<std::uint64_t> memtables{0};
  std::array<std::atomic<std::uint64_t>, kLevelMax + 1> levels{};
};

// Whether there is a visible entry, delete or put; fills in `entry`, with the newest, if so.
Result<bool> find_entry(const VisibleView& at, TableCache& tables, ByteView full_key,
                        bool fill_cache, HitCounters& hits, FoundEntry& entry);

// Every full key of the range once, newest entry, deletes included.
std::unique_ptr<MergeCursor> merge_view(const VisibleView& at, TableCache& tables,
                                        const FullKeyRange& range, Direction direction,
                                        bool fill_cache,
                                        std::uint64_t large_value_bytes = kNoLargeValues);

// What a scan asks of the engine.
struct ScanHost {
  std::function<Status(Status)> explain;
  const Revocations& revocations;
  // What is hidden now. NotFound: the namespace was dropped.
  std::function<Status(VisibleView&, ExpiryView&)> renew;
};

// What the caller of a scan sees: puts only, user keys, nothing that has expired or is revoked
// meanwhile. `revocations`: as counted before `at` and `expiry` were looked at.
std::unique_ptr<Iterator> make_scan(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                                    NamespaceId id, const KeyRange& range,
                                    const ReadOptions& options, ScanHost host,
                                    std::uint64_t revocations);

// Bytes of items, from metadata; an item that a bound cuts counts half.
Result<std::uint64_t> size_of_range(const Version& version, TableCache& tables, NamespaceId id,
                                    const FullKeyRange& range);

// About how many bytes of each file are of a range.
struct RangeShares {
  std::map<FileNumber, std::uint64_t> metadata;
  std::map<FileNumber, std::uint64_t> values;
};
Result<RangeShares> shares_of_range(const Version& version, TableCache& tables,
                                    const FullKeyRange& range);

// `patience` may be null.
Result<RangeStats> count_range(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                               const FullKeyRange& range, Patience* patience);
Status summarize_range(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                       const FullKeyRange& range, std::size_t prefix_bytes, Patience* patience,
                       const PrefixTaker& take);

// ViewSources: the memtables and tables that a read of many keys merges, of each run those tables
// that meet the range. Owned by one thread.
class ViewSources final : public MergeSources {
 public:
  // `range` lies within one namespace.
  ViewSources(const VisibleView& at, TableCache& tables, const FullKeyRange& range,
              Direction direction, bool fill_cache, std::uint64_t large_value_bytes);

  std::span<const MergeSource> all() const override { return sources_; }
  EntryCursor& open(std::size_t index) override;

 private:
  // One of the two.
  struct Place {
    const std::shared_ptr<Memtable>* memtable = nullptr;
    std::span<const TablePointer> tables;
  };

  void add(const std::shared_ptr<Memtable>& memtable);
  void add(std::span<const TablePointer> tables, SequenceNumber sequence_min,
           SequenceNumber sequence_max);

  const VisibleView at_;
  const FullKeyRange range_;
  const Direction direction_;
  const bool fill_cache_;
  const std::uint64_t large_value_bytes_;
  std::vector<MergeSource> sources_;
  std::vector<Place> places_;  // of sources_
  // The tables that hold something newer, of each run that is read by positions.
  std::deque<std::vector<TablePointer>> newer_;
  std::vector<std::unique_ptr<EntryCursor>> memtables_;
  LentCursors runs_;
};

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

// Threads: any. It waits for the drives alone and has no lock of its own; what iterators and
// snapshots took they keep alive.
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

// A large value that a scan hands out. It keeps the view that it is read from, tells what went
// wrong as the scan does, and ends where its key is revoked. Used by scan.cc alone; one thread.

// What was erased, bytes or key, is no damage.
inline Status explain_large(const std::function<Status(Status)>& explain, const Status& failure) {
  return failure.code() == StatusCode::NotFound ? failure : explain(failure);
}

class ScanLargeValue final : public LargeValue {
 public:
  ScanLargeValue(std::unique_ptr<LargeValue> inner, VisibleView at, ScanHost host, Bytes full_key,
                 std::uint64_t revocations)
      : at_(std::move(at)),
        inner_(std::move(inner)),
        host_(std::move(host)),
        full_key_(std::move(full_key)),
        revocations_(revocations) {}

  std::uint64_t size_bytes() const override { return inner_->size_bytes(); }
  std::uint64_t sequence() const override { return inner_->sequence(); }
  Result<ByteView> next_piece() override {
    EC_TRY(check_there());
    auto piece = inner_->next_piece();
    if (!piece.ok()) return explain_large(host_.explain, piece.status());
    // What was read may be blank by now, or be gone.
    EC_TRY(check_there());
    return piece;
  }

 private:
  Status check_there() {
    const std::uint64_t count = host_.revocations.count();
    if (count == revocations_) return ok();
    ExpiryView expiry;
    EC_TRY(host_.renew(at_, expiry));
    if (expiry.hides(full_key_) || is_hidden(at_, full_key_, inner_->sequence()))
      return not_found("a value was erased while it was read");
    revocations_ = count;
    return ok();
  }

  VisibleView at_;
  const std::unique_ptr<LargeValue> inner_;
  const ScanHost host_;
  const Bytes full_key_;
  std::uint64_t revocations_;
};

}  // namespace edgecase::engine
