// Counting: an item (a group or a large value) that lies inside the range and shares its keys with
// nothing else is counted from its metadata record; the rest is merged entry by entry.
#include <algorithm>
#include <utility>

#include "core/hidden.h"
#include "core/reader.h"

namespace edgecase::engine {
namespace {

// Items whose key ranges touch one another, directly or through others; with nothing of a memtable
// in between they are what a merge must look at together.
struct Cluster {
  Bytes first;
  Bytes last;
  std::size_t items = 0;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  std::uint64_t stored_bytes = 0;
};

std::vector<Cluster> cluster_items(std::vector<TableCache::ItemSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Cluster> clusters;
  for (TableCache::ItemSpan& span : spans) {
    if (clusters.empty() || clusters.back().last < span.first) {
      clusters.push_back({std::move(span.first), std::move(span.last), 1, span.entries,
                          span.deletes, span.stored_bytes});
      continue;
    }
    Cluster& cluster = clusters.back();
    cluster.last = std::max(cluster.last, span.last);
    ++cluster.items;
    cluster.entries += span.entries;
    cluster.deletes += span.deletes;
    cluster.stored_bytes += span.stored_bytes;
  }
  return clusters;
}

class Counter {
 public:
  Counter(const VisibleView& at, TableCache& tables, ExpiryView expiry, const FullKeyRange& range)
      : range_(range),
        hidden_(at),
        expiry_(std::move(expiry)),
        merge_(merge_view(at, tables, range, Direction::Forward, false)) {
    // The memtables alone: what lies between the items, and whether anything lies within one.
    VisibleView memory = at;
    auto view = std::make_shared<ReadView>(*at.view);
    view->version = std::make_shared<const Version>();
    memory.view = std::move(view);
    memory_ = merge_view(memory, tables, range, Direction::Forward, false);
  }

  Result<RangeStats> count(const std::vector<Cluster>& clusters) {
    for (const Cluster& cluster : clusters) {
      EC_TRY(count_memory_before(cluster.first));
      const bool inside =
          cluster.first >= range_.lower && (range_.upper.empty() || cluster.last < range_.upper);
      const bool alone = (!memory_->valid() || memory_->full_key() > cluster.last) &&
                         (hidden_.empty() || !hidden_.touches(cluster.first, cluster.last)) &&
                         !expiry_.may_hide(cluster.first, cluster.last);
      if (inside && alone && cluster.items == 1) {
        stats_.entries += cluster.entries - cluster.deletes;
        stats_.stored_bytes += cluster.stored_bytes;
      } else {
        EC_TRY(count_merged(cluster));
      }
    }
    EC_TRY(count_memory_before({}));
    return stats_;
  }

 private:
  bool is_live(const MergeCursor& at) const {
    return at.kind() == EntryKind::Put &&
           (hidden_.empty() || !hidden_.hides(at.full_key(), at.sequence())) &&
           !expiry_.hides(at.full_key());
  }

  // Up to `key`, or all the rest when it is empty.
  Status count_memory_before(ByteView key) {
    for (; memory_->valid() && (key.empty() || memory_->full_key() < key); memory_->next()) {
      EC_TRY(memory_->load());
      if (is_live(*memory_)) {
        ++stats_.entries;
        stats_.stored_bytes += user_key_of(memory_->full_key()).size() + memory_->value().size();
      }
    }
    return memory_->status();
  }

  Status count_merged(const Cluster& cluster) {
    std::uint64_t live = 0;
    merge_->seek(std::max(cluster.first, range_.lower));
    while (merge_->valid() && merge_->full_key() <= cluster.last) {
      if (expiry_.hides(merge_->full_key())) {
        // Not by looking at each: the drive that holds them need not be there.
        Bytes behind_expired(merge_->full_key());
        store_ordinal(behind_expired.data() + behind_expired.size() - sizeof(std::uint64_t),
                      expiry_.horizon(scope_part(behind_expired)));
        merge_->seek(behind_expired);
        continue;
      }
      EC_TRY(merge_->load());
      if (is_live(*merge_)) ++live;
      merge_->next();
    }
    EC_TRY(merge_->status());
    // Memory may hold more of these keys than the items do.
    const std::uint64_t share = std::min(live, cluster.entries);
    if (cluster.entries != 0) {
      stats_.stored_bytes += static_cast<std::uint64_t>(static_cast<double>(cluster.stored_bytes) *
                                                        static_cast<double>(share) /
                                                        static_cast<double>(cluster.entries));
    }
    stats_.entries += live;
    Bytes behind = cluster.last;
    behind.push_back('\0');
    while (memory_->valid() && memory_->full_key() < behind) memory_->next();
    return memory_->status();
  }

  const FullKeyRange& range_;
  const HiddenRanges hidden_;
  const ExpiryView expiry_;
  std::unique_ptr<MergeCursor> merge_;
  std::unique_ptr<MergeCursor> memory_;
  RangeStats stats_;
};

}  // namespace

Result<RangeStats> count_range(const VisibleView& at, TableCache& tables, ExpiryView expiry,
                               const FullKeyRange& range) {
  if (range.empty()) return RangeStats{};
  std::vector<TableCache::ItemSpan> spans;
  for (const auto& table : at.view->version->tables) {
    if (table->largest < range.lower || (!range.upper.empty() && table->smallest >= range.upper))
      continue;
    EC_ASSIGN_OR_RETURN(auto found, tables.items(table, range.lower, range.upper));
    std::move(found.begin(), found.end(), std::back_inserter(spans));
  }
  return Counter(at, tables, std::move(expiry), range).count(cluster_items(std::move(spans)));
}

namespace {

// Of an item that a bound cuts, or that lies around the range: the share of its entries, or half
// of it where it cannot be read.
std::uint64_t share_of_item(TableCache& tables, const TablePointer& table,
                            const TableCache::ItemSpan& item, const FullKeyRange& range) {
  const bool inside = item.first >= range.lower && (range.upper.empty() || item.last < range.upper);
  if (inside) return item.stored_bytes;
  Bytes behind = item.last;
  behind.push_back('\0');
  const Bytes upper = range.upper.empty() ? behind : std::min(behind, range.upper);
  const auto entries =
      tables.cursor(table, std::max(item.first, range.lower), upper, Direction::Forward, false);
  std::uint64_t count = 0;
  for (; entries->valid() && entries->load().ok(); entries->next()) ++count;
  if (!entries->status().ok()) return item.stored_bytes / 2;
  return item.stored_bytes * count / std::max<std::uint64_t>(item.entries, 1);
}

}  // namespace

Result<RangeShares> shares_of_range(const Version& version, TableCache& tables,
                                    const FullKeyRange& range) {
  RangeShares shares;
  if (range.empty()) return shares;
  for (const TablePointer& table : version.tables) {
    if (table->largest < range.lower || (!range.upper.empty() && table->smallest >= range.upper))
      continue;
    EC_ASSIGN_OR_RETURN(const auto items, tables.items(table, range.lower, range.upper));
    for (const TableCache::ItemSpan& item : items) {
      const std::uint64_t bytes = share_of_item(tables, table, item, range);
      if (bytes == 0) continue;
      shares.values[item.file_number] += bytes;
      shares.metadata[table->number] += table->size_bytes / table->item_count;
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
    EC_ASSIGN_OR_RETURN(const auto items, tables.items(table, range.lower, range.upper));
    for (const TableCache::ItemSpan& item : items)
      bytes += lies_inside(item.first, item.last) ? item.stored_bytes : item.stored_bytes / 2;
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
