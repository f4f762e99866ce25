// Counting: an item (a group or a large value) that lies inside the range and shares its keys with
// nothing else is counted from its metadata record; the rest is merged entry by entry.
#include <algorithm>
#include <utility>

#include "core/read_view.h"
#include "core/reader.h"
#include "table/record_cursor.h"

namespace edgecase::engine {
namespace {

// Values in tables that are larger count without being read.
constexpr std::uint64_t kUnreadBytes = 64u << 10;

// Items whose key ranges touch one another, directly or through others; with nothing of a memtable
// in between they are what a merge must look at together.
struct Cluster {
  Bytes first;
  Bytes last;
  std::size_t items = 0;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  std::uint64_t stored_bytes = 0;
  SequenceNumber sequence_min = UINT64_MAX;
};

// The tables that may hold items of the range, by their smallest key.
std::vector<TablePointer> tables_of(const Version& version, const FullKeyRange& range,
                                    SequenceNumber newer_than = 0) {
  std::vector<TablePointer> found;
  for (const TablePointer& table : version.tables) {
    if (table->largest < range.lower || (!range.upper.empty() && table->smallest >= range.upper) ||
        table->sequence_max <= newer_than)
      continue;
    found.push_back(table);
  }
  std::sort(found.begin(), found.end(),
            [](const TablePointer& a, const TablePointer& b) { return a->smallest < b->smallest; });
  return found;
}

// The clusters of a range in key order, of items that hold something newer than `newer_than`. Holds
// a block of records of each table that it stands in, however many items there are.
class ClusterStream {
 public:
  ClusterStream(const VisibleView& at, TableCache& tables, const FullKeyRange& range)
      : tables_(tables),
        range_(range),
        newer_than_(at.newer_than),
        waiting_(tables_of(*at.view->version, range, newer_than_)) {
    std::reverse(waiting_.begin(), waiting_.end());
  }

  // False: there are no more.
  Result<bool> next(Cluster& cluster) {
    while (open_.empty() && !waiting_.empty()) EC_TRY(open_until(waiting_.back()->smallest));
    if (open_.empty()) return false;
    EC_TRY(open_until(first_key()));
    cluster = Cluster{Bytes(first_key()), {}};
    while (!open_.empty() && (cluster.items == 0 || first_key() <= cluster.last)) {
      EC_TRY(take_first(cluster));
      EC_TRY(open_until(cluster.last));
    }
    return true;
  }

 private:
  using Cursor = std::unique_ptr<RecordCursor>;

  static bool is_later(const Cursor& a, const Cursor& b) {
    return a->record().first > b->record().first;
  }
  ByteView first_key() const { return open_.front()->record().first; }

  // Tables that begin at or before `key` take part.
  Status open_until(ByteView key) {
    const Bytes last(key);  // which may be of what is open
    while (!waiting_.empty() && waiting_.back()->smallest <= last) {
      auto cursor =
          std::make_unique<RecordCursor>(tables_.records({waiting_.back()}, range_.lower));
      waiting_.pop_back();
      EC_TRY(push(std::move(cursor)));
    }
    return ok();
  }

  Status push(Cursor cursor) {
    while (cursor->valid() && cursor->record().sequence_max <= newer_than_) cursor->next_record();
    if (!cursor->valid()) return cursor->status();
    if (!range_.upper.empty() && cursor->record().first >= range_.upper) return ok();
    open_.push_back(std::move(cursor));
    std::push_heap(open_.begin(), open_.end(), is_later);
    return ok();
  }

  Status take_first(Cluster& cluster) {
    std::pop_heap(open_.begin(), open_.end(), is_later);
    Cursor cursor = std::move(open_.back());
    open_.pop_back();
    const UMetaRecord& record = cursor->record();
    if (cluster.items == 0 || cluster.last < record.last) cluster.last = record.last;
    ++cluster.items;
    cluster.entries += record.entries;
    cluster.deletes += record.deletes;
    cluster.stored_bytes += record.pointer.size_bytes;
    cluster.sequence_min = std::min(cluster.sequence_min, record.sequence_min);
    cursor->next_record();
    return push(std::move(cursor));
  }

  TableCache& tables_;
  const FullKeyRange& range_;
  const SequenceNumber newer_than_;
  std::vector<TablePointer> waiting_;  // not begun, the first of them at the end
  std::vector<Cursor> open_;           // a heap, on top the smallest key
};

// Asked after so many steps.
constexpr std::size_t kStepsPerAsking = 1'024;

// Hands on what lies in a range, in key order: items whole where they may be, and single entries.
// `Sink`: entry(full_key, stored_bytes) and, where takes_whole() says so of a cluster, whole().
template <typename Sink>
class Counter {
 public:
  Counter(const VisibleView& at, TableCache& tables, ExpiryView expiry, const FullKeyRange& range,
          Patience* patience, Sink& sink)
      : range_(range),
        newer_than_(at.newer_than),
        hidden_(at),
        expiry_(std::move(expiry)),
        merge_(merge_view(at, tables, range, Direction::Forward, false, kUnreadBytes)),
        patience_(patience),
        sink_(sink) {
    // The memtables alone: what lies between the items, and whether anything lies within one.
    VisibleView memory = at;
    auto view = std::make_shared<ReadView>(*at.view);
    view->version = std::make_shared<const Version>();
    memory.view = std::move(view);
    memory_ = merge_view(memory, tables, range, Direction::Forward, false);
  }

  Status count(ClusterStream clusters) {
    for (Cluster cluster; true;) {
      EC_ASSIGN_OR_RETURN(const bool more, clusters.next(cluster));
      if (!more) break;
      EC_TRY(count_memory_before(cluster.first));
      const bool inside =
          cluster.first >= range_.lower && (range_.upper.empty() || cluster.last < range_.upper);
      const bool alone = cluster.sequence_min > newer_than_ &&
                         (!memory_->valid() || memory_->full_key() > cluster.last) &&
                         (hidden_.empty() || !hidden_.touches(cluster.first, cluster.last)) &&
                         !expiry_.may_hide(cluster.first, cluster.last);
      if (inside && alone && cluster.items == 1 && sink_.takes_whole(cluster)) {
        EC_TRY(sink_.whole(cluster));
        EC_TRY(step());
      } else {
        EC_TRY(count_merged(cluster));
      }
    }
    return count_memory_before({});
  }

 private:
  bool is_live(const EntryView& entry) const {
    return entry.kind == EntryKind::Put && entry.sequence > newer_than_ &&
           (hidden_.empty() || !hidden_.hides(entry.full_key, entry.sequence)) &&
           !expiry_.hides(entry.full_key);
  }

  Status step() {
    if (patience_ == nullptr || ++steps_ % kStepsPerAsking != 0) return ok();
    return patience_->go_on();
  }

  // Up to `key`, or all the rest when it is empty.
  Status count_memory_before(ByteView key) {
    while (memory_->valid() && (key.empty() || memory_->full_key() < key)) {
      for (const EntryView& entry : memory_->take(key)) {
        if (!is_live(entry)) continue;
        EC_TRY(sink_.entry(entry.full_key, static_cast<double>(user_key_of(entry.full_key).size() +
                                                               entry.value.size())));
        EC_TRY(step());
      }
    }
    return memory_->status();
  }

  Status count_merged(const Cluster& cluster) {
    const double share = cluster.entries == 0 ? 0
                                              : static_cast<double>(cluster.stored_bytes) /
                                                    static_cast<double>(cluster.entries);
    // Memory may hold more of these keys than the items do.
    std::uint64_t left = Sink::kSharesItems ? cluster.entries : UINT64_MAX;
    Bytes behind = cluster.last;
    behind.push_back('\0');
    merge_->seek(std::max(cluster.first, range_.lower));
    while (merge_->valid() && merge_->full_key() < behind) {
      EC_TRY(step());
      if (expiry_.hides(merge_->full_key())) {
        // Not by looking at each: the drive that holds them need not be there.
        Bytes behind_expired(merge_->full_key());
        store_ordinal(behind_expired.data() + behind_expired.size() - sizeof(std::uint64_t),
                      expiry_.horizon(scope_part(behind_expired)));
        merge_->seek(behind_expired);
        continue;
      }
      for (const EntryView& entry : merge_->take(behind)) {
        if (!is_live(entry)) continue;
        EC_TRY(sink_.entry(entry.full_key, left > 0 ? share : 0));
        if (left > 0) --left;
      }
    }
    EC_TRY(merge_->status());
    while (memory_->valid() && memory_->full_key() < behind) memory_->take(behind);
    return memory_->status();
  }

  const FullKeyRange& range_;
  const SequenceNumber newer_than_;
  const HiddenRanges hidden_;
  const ExpiryView expiry_;
  std::unique_ptr<MergeCursor> merge_;
  std::unique_ptr<MergeCursor> memory_;
  Patience* const patience_;
  Sink& sink_;
  std::size_t steps_ = 0;
};

std::uint64_t whole_bytes(double bytes) {
  return static_cast<std::uint64_t>(bytes + 0.5);
}

struct RangeSink {
  static constexpr bool kSharesItems = true;  // no more than they take

  static bool takes_whole(const Cluster&) { return true; }
  Status whole(const Cluster& cluster) {
    entries += cluster.entries - cluster.deletes;
    stored_bytes += static_cast<double>(cluster.stored_bytes);
    return ok();
  }
  Status entry(ByteView, double bytes) {
    ++entries;
    stored_bytes += bytes;
    return ok();
  }

  std::uint64_t entries = 0;
  double stored_bytes = 0;
};

class PrefixSink {
 public:
  // Items are not shared: the part that comes last would have nothing.
  static constexpr bool kSharesItems = false;

  PrefixSink(std::size_t prefix_bytes, const PrefixTaker& take)
      : prefix_bytes_(prefix_bytes), take_(take) {}

  // Only a cluster of one prefix, nothing deleted, has the prefix's first and last key.
  bool takes_whole(const Cluster& cluster) const {
    return cluster.deletes == 0 && prefix_of(cluster.first) == prefix_of(cluster.last);
  }
  Status whole(const Cluster& cluster) {
    EC_TRY(add(cluster.first, cluster.entries, static_cast<double>(cluster.stored_bytes)));
    last_.assign(user_key_of(cluster.last));
    return ok();
  }
  Status entry(ByteView full_key, double bytes) { return add(full_key, 1, bytes); }
  Status finish() {
    if (entries_ == 0) return ok();
    return take_({first_, last_, std::exchange(entries_, 0),
                  whole_bytes(std::exchange(stored_bytes_, 0.0))});
  }

 private:
  ByteView prefix_of(ByteView full_key) const {
    return user_key_of(full_key).substr(0, prefix_bytes_);
  }
  Status add(ByteView full_key, std::uint64_t entries, double bytes) {
    const ByteView key = user_key_of(full_key);
    if (entries_ == 0 ||
        key.substr(0, prefix_bytes_) != ByteView(first_).substr(0, prefix_bytes_)) {
      EC_TRY(finish());
      first_.assign(key);
    }
    last_.assign(key);
    entries_ += entries;
    stored_bytes_ += bytes;
    return ok();
  }

  const std::size_t prefix_bytes_;
  const PrefixTaker& take_;
  Bytes first_, last_;
  std::uint64_t entries_ = 0;
  double stored_bytes_ = 0;
};

}  // namespace

Result<RangeStats> count_range(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                               const FullKeyRange& range, Patience* patience) {
  if (range.empty()) return RangeStats{};
  RangeSink sink;
  EC_TRY(Counter(at, tables, std::move(expiry), range, patience, sink)
             .count(ClusterStream(at, tables, range)));
  return RangeStats{sink.entries, whole_bytes(sink.stored_bytes)};
}

Status summarize_range(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                       const FullKeyRange& range, std::size_t prefix_bytes, Patience* patience,
                       const PrefixTaker& take) {
  if (range.empty()) return ok();
  PrefixSink sink(prefix_bytes, take);
  EC_TRY(Counter(at, tables, std::move(expiry), range, patience, sink)
             .count(ClusterStream(at, tables, range)));
  return sink.finish();
}

namespace {

// `visit(record)` of each item of `table` that meets the range.
template <typename Visit>
Status for_each_item(TableCache& tables, const TablePointer& table, const FullKeyRange& range,
                     const Visit& visit) {
  RecordCursor at = tables.records({table}, range.lower);
  for (; at.valid(); at.next_record()) {
    if (!range.upper.empty() && at.record().first >= range.upper) return ok();
    visit(at.record());
  }
  return at.status();
}

// The share of an item that a bound cuts, or that lies around the range: that of its entries, or
// half of it where it cannot be read.
std::uint64_t share_of_item(TableCache& tables, const TablePointer& table, const UMetaRecord& item,
                            const FullKeyRange& range) {
  const std::uint64_t stored_bytes = item.pointer.size_bytes;
  const bool inside = item.first >= range.lower && (range.upper.empty() || item.last < range.upper);
  if (inside) return stored_bytes;
  Bytes behind(item.last);
  behind.push_back('\0');
  const Bytes upper = range.upper.empty() ? behind : std::min(behind, range.upper);
  const auto entries = tables.cursor(table, std::max(item.first, ByteView(range.lower)), upper,
                                     Direction::Forward, false, kUnreadBytes);
  std::uint64_t count = 0;
  for (; entries->valid() && entries->load().ok(); entries->next()) ++count;
  if (!entries->status().ok()) return stored_bytes / 2;
  return stored_bytes * count / std::max<std::uint64_t>(item.entries, 1);
}

}  // namespace

Result<RangeShares> shares_of_range(const Version& version, TableCache& tables,
                                    const FullKeyRange& range) {
  RangeShares shares;
  if (range.empty()) return shares;
  for (const TablePointer& table : tables_of(version, range)) {
    const Status listed = for_each_item(tables, table, range, [&](const UMetaRecord& item) {
      const std::uint64_t bytes = share_of_item(tables, table, item, range);
      if (bytes == 0) return;
      shares.values[item.pointer.file_number] += bytes;
      shares.metadata[table->number] += table->size_bytes / table->item_count;
    });
    if (listed.code() == StatusCode::Corruption) {
      // What of it is of the range nobody can tell: half, as of what cannot be read.
      shares.metadata[table->number] += table->size_bytes / 2;
      for (const ValueFileUse& use : table->value_files)
        shares.values[use.file_number] += use.bytes / 2;
    } else {
      EC_TRY(listed);
    }
  }
  return shares;
}

Result<std::uint64_t> size_of_range(const Version& version, TableCache& tables, NamespaceId id,
                                    const FullKeyRange& range) {
  std::uint64_t bytes = 0;
  const auto lies_inside = [&](ByteView first, ByteView last) {
    return first >= ByteView(range.lower) && (range.upper.empty() || last < ByteView(range.upper));
  };
  const auto add = [&](const TablePointer& table) -> Status {
    if (table->largest < range.lower || (!range.upper.empty() && table->smallest >= range.upper))
      return ok();
    if (lies_inside(table->smallest, table->largest)) {
      bytes += table->item_bytes();
      return ok();
    }
    const Status listed = for_each_item(tables, table, range, [&](const UMetaRecord& item) {
      const std::uint64_t stored_bytes = item.pointer.size_bytes;
      bytes += lies_inside(item.first, item.last) ? stored_bytes : stored_bytes / 2;
    });
    if (listed.code() != StatusCode::Corruption) return listed;
    bytes += table->item_bytes() / 2;
    return ok();
  };
  if (range.empty()) return bytes;
  for (const TablePointer& table : version.level0) EC_TRY(add(table));
  const auto tree = version.trees.find(id);
  if (tree == version.trees.end()) return bytes;
  for (const Run& run : tree->second)
    for (const TablePointer& table : run.tables) EC_TRY(add(table));
  return bytes;
}

}  // namespace edgecase::engine
