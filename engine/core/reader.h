// Reads over one view: lookups, scans, counting. Stateless; thread-safe as TableCache is.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/merge_cursor.h"
#include "core/read_view.h"
#include "edgecase/engine.h"
#include "expiry/expiry_view.h"
#include "table/cursor_pool.h"
#include "table/table_cache.h"

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

}  // namespace edgecase::engine
