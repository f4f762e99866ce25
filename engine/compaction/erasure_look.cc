#include "compaction/erasure_look.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "table/record_cursor.h"
#include "value/group.h"
#include "value/value_table_reader.h"

namespace edgecase::engine {
namespace {

// The first of the disjoint ranges that ends behind the key begins at or before it.
bool is_within(std::span<const RangeDelete> ranges, const EntryView& entry) {
  const auto found = std::partition_point(
      ranges.begin(), ranges.end(),
      [&](const RangeDelete& each) { return ByteView(each.upper) <= entry.full_key; });
  return found != ranges.end() && entry.full_key >= ByteView(found->lower) &&
         entry.sequence < found->sequence;
}

// Nothing when the item is malformed.
std::optional<bool> item_holds(const Item& item, std::span<const RangeDelete> ranges) {
  if (item.type() == ItemType::Single) {
    const auto entry = parse_single(item.contents());
    if (!entry) return std::nullopt;
    return is_within(ranges, *entry);
  }
  GroupReader group;
  if (!group.open(item.type(), item.contents())) return std::nullopt;
  for (std::size_t i = 0; i < group.entry_count(); ++i) {
    if (!group.move_to(i)) return std::nullopt;
    if (is_within(ranges, group.entry())) return true;
  }
  return false;
}

Result<std::unique_ptr<ValueTableReader>> open_values(FileSystem& file_system,
                                                      const ValueFilePlace& place) {
  EC_ASSIGN_OR_RETURN(auto file, file_system.open_file(place.path));
  return ValueTableReader::open(std::move(file), place.store_id, place.number, place.keys);
}

bool touches(const ValueTableSummary& summary, const RangeDelete& range) {
  return range.lower <= summary.largest && summary.smallest < range.upper &&
         summary.sequence_min < range.sequence;
}

bool names_range(const ValueTableSummary& summary, std::span<const RangeDelete> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const RangeDelete& each) {
    const auto names = [&](const Bytes& key) { return key >= each.lower && key < each.upper; };
    return summary.sequence_min < each.sequence &&
           (names(summary.smallest) || names(summary.largest));
  });
}

// First and last key of an item; nothing when it is malformed.
std::optional<std::pair<Bytes, Bytes>> bounds_of(const Item& item) {
  if (item.type() == ItemType::Single) {
    const auto entry = parse_single(item.contents());
    if (!entry) return std::nullopt;
    return std::pair(Bytes(entry->full_key), Bytes(entry->full_key));
  }
  GroupReader group;
  if (!group.open(item.type(), item.contents()) || group.entry_count() == 0 || !group.move_to(0))
    return std::nullopt;
  Bytes first(group.entry().full_key);
  if (!group.move_to(group.entry_count() - 1)) return std::nullopt;
  return std::pair(std::move(first), Bytes(group.entry().full_key));
}

// Looks for items of ranges in a file whose items lie in key order.
class OrderedSearch {
 public:
  OrderedSearch(const ValueTableReader& values, const ValueTableSummary& summary,
                TableCache& tables, const Version& version, std::span<const RangeDelete> ranges)
      : values_(values), summary_(summary), tables_(tables), version_(version), ranges_(ranges) {}

  Result<std::optional<ErasedItems>> run() {
    found_.summary_names_range = names_range(summary_, ranges_);
    for (const RangeDelete& range : ranges_) {
      if (!touches(summary_, range)) continue;
      EC_TRY(search(range));
      if (unclear_) return {std::nullopt};
    }
    return {std::move(found_)};
  }

 private:
  // Of the first item from `index` on that is not blank; `index` moves there. Nothing when there is
  // none, or when it cannot be told.
  Result<std::optional<std::pair<Bytes, Bytes>>> bounds_from(std::size_t& index) {
    for (; index < summary_.items.size(); ++index) {
      const Result<Item> item = values_.read(summary_.items[index]);
      if (item.ok()) {
        auto bounds = bounds_of(*item);
        unclear_ = unclear_ || !bounds;
        return bounds;
      }
      if (item.status().code() == StatusCode::NotFound) {
        unclear_ = true;
        break;
      }
      if (item.status().code() != StatusCode::Corruption) return item.status();
      if (values_.reads_blank(summary_.items[index])) continue;
      unclear_ = true;
      break;
    }
    return {std::nullopt};
  }

  Status search(const RangeDelete& range) {
    // The first item that ends at or behind the begin of the range lies in [low, high].
    std::size_t low = 0;
    std::size_t high = summary_.items.size();
    while (low < high) {
      std::size_t middle = low + (high - low) / 2;
      const std::size_t from = middle;
      EC_ASSIGN_OR_RETURN(const auto bounds, bounds_from(middle));
      if (unclear_) return ok();
      if (!bounds || bounds->second >= range.lower) {
        high = from;
      } else {
        low = middle + 1;
      }
    }
    for (std::size_t at = low; at < summary_.items.size(); ++at) {
      EC_ASSIGN_OR_RETURN(const auto bounds, bounds_from(at));
      if (unclear_ || !bounds || bounds->first >= range.upper) return ok();
      EC_TRY(take(summary_.items[at], *bounds));
    }
    return ok();
  }

  Status take(const ValuePointer& pointer, const std::pair<Bytes, Bytes>& bounds) {
    const bool again =
        !found_.items.empty() && found_.items.back().offset_bytes == pointer.offset_bytes;
    if (again) return ok();  // it reaches over two ranges
    EC_ASSIGN_OR_RETURN(const Item item, values_.read(pointer));
    if (item_holds(item, ranges_) == false) return ok();
    EC_ASSIGN_OR_RETURN(const bool live, is_live(pointer, bounds.first));
    unclear_ = unclear_ || live;
    found_.items.push_back(pointer);
    found_.bytes += pointer.size_bytes;
    return ok();
  }

  Result<bool> is_live(const ValuePointer& pointer, ByteView first) {
    for (const TablePointer& table : version_.tables) {
      if (ByteView(table->smallest) > first || ByteView(table->largest) < first) continue;
      if (std::none_of(
              table->value_files.begin(), table->value_files.end(),
              [&](const ValueFileUse& use) { return use.file_number == pointer.file_number; }))
        continue;
      RecordCursor records = tables_.records({table}, first);
      EC_TRY(records.status());
      if (records.valid() && records.record().pointer.file_number == pointer.file_number &&
          records.record().pointer.offset_bytes == pointer.offset_bytes)
        return true;
    }
    return false;
  }

  const ValueTableReader& values_;
  const ValueTableSummary& summary_;
  TableCache& tables_;
  const Version& version_;
  const std::span<const RangeDelete> ranges_;
  ErasedItems found_;
  bool unclear_ = false;
};

}  // namespace

Result<LiveItems> find_live_items(TableCache& tables, const Version& version,
                                  const std::set<FileNumber>& files) {
  LiveItems live;
  for (const FileNumber number : files) live[number];
  for (const TablePointer& table : version.tables) {
    const bool leads_there =
        std::any_of(table->value_files.begin(), table->value_files.end(),
                    [&](const ValueFileUse& use) { return files.contains(use.file_number); });
    if (!leads_there) continue;
    RecordCursor records = tables.records({table});
    for (; records.valid(); records.next_record()) {
      const ValuePointer& pointer = records.record().pointer;
      const auto found = live.find(pointer.file_number);
      if (found != live.end()) found->second.push_back(pointer.offset_bytes);
    }
    EC_TRY(records.status());
  }
  for (auto& [number, offsets] : live) std::sort(offsets.begin(), offsets.end());
  return live;
}

Result<ErasedItems> find_erased_items(FileSystem& file_system, const ValueFilePlace& place,
                                      const std::vector<std::uint64_t>& live,
                                      std::span<const RangeDelete> ranges) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  ErasedItems erased;
  erased.summary_names_range = names_range(summary, ranges);
  const bool touched = std::any_of(ranges.begin(), ranges.end(),
                                   [&](const RangeDelete& each) { return touches(summary, each); });
  if (!touched) return erased;
  for (const ValuePointer& pointer : summary.items) {
    if (std::binary_search(live.begin(), live.end(), pointer.offset_bytes)) continue;
    const Result<Item> item = values->read(pointer);
    // Without its key nobody can tell what it was; it goes, too.
    const bool lost = item.status().code() == StatusCode::Corruption ||
                      item.status().code() == StatusCode::NotFound;
    if (!item.ok() && !lost) return item.status();
    if (!item.ok() && values->reads_blank(pointer)) continue;
    // What cannot be read nobody will miss.
    if (item.ok() && item_holds(*item, ranges) == false) continue;
    erased.items.push_back(pointer);
    erased.bytes += pointer.size_bytes;
  }
  return erased;
}

Result<std::optional<ErasedItems>> search_erased_items(FileSystem& file_system,
                                                       const ValueFilePlace& place,
                                                       TableCache& tables, const Version& version,
                                                       std::span<const RangeDelete> ranges) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  if (!summary.ascending) return {std::nullopt};
  return OrderedSearch(*values, summary, tables, version, ranges).run();
}

Result<bool> lies_beside(FileSystem& file_system, const ValueFilePlace& place,
                         std::span<const RangeDelete> ranges) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  return std::none_of(ranges.begin(), ranges.end(),
                      [&](const RangeDelete& each) { return touches(summary, each); });
}

}  // namespace edgecase::engine
