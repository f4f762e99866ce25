#include "compaction/erasure_source.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "table/record_cursor.h"
#include "value/group.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

// Nothing when the group is malformed.
std::optional<bool> group_holds(const Item& item, std::span<const RangeDelete> ranges) {
  GroupReader group;
  if (!group.open(item.type(), item.contents())) return std::nullopt;
  if (group.entry_count() == 0) return false;
  if (!group.move_to(0)) return std::nullopt;
  const Bytes first(group.entry().full_key);
  if (!group.move_to(group.entry_count() - 1)) return std::nullopt;
  const Bytes last(group.entry().full_key);
  for (const RangeDelete& range : meeting(ranges, first, last)) {
    std::size_t at = 0;
    if (!group.lower_bound(range.lower, at)) return std::nullopt;
    for (; at < group.entry_count(); ++at) {
      if (!group.move_to(at)) return std::nullopt;
      if (group.entry().full_key >= ByteView(range.upper)) break;
      if (group.entry().sequence < range.sequence) return true;
    }
  }
  return false;
}

// Whether it holds an entry of the disjoint ranges that is older. Nothing when it is malformed.
std::optional<bool> item_holds(const Item& item, std::span<const RangeDelete> ranges) {
  if (item.type() != ItemType::Single) return group_holds(item, ranges);
  Bytes room;
  const auto entry = parse_single(item.contents(), room);
  if (!entry) return std::nullopt;
  const auto around = meeting(ranges, entry->full_key, entry->full_key);
  return !around.empty() && entry->sequence < around.front().sequence;
}

Result<std::unique_ptr<ValueTableReader>> open_values(FileSystem& file_system,
                                                      const ValueFilePlace& place) {
  EC_ASSIGN_OR_RETURN(auto file, file_system.open_file(place.path));
  return ValueTableReader::open(std::move(file), place.store_id, place.number, place.keys);
}

// The ranges that the file may hold something of, as far as its summary tells.
std::vector<RangeDelete> ranges_in(const ValueTableSummary& summary,
                                   std::span<const RangeDelete> ranges) {
  std::vector<RangeDelete> found;
  for (const RangeDelete& each : meeting(ranges, summary.smallest, summary.largest)) {
    if (summary.sequence_min < each.sequence) found.push_back(each);
  }
  return found;
}

// `ranges` are those in the file.
bool names_range(const ValueTableSummary& summary, std::span<const RangeDelete> ranges) {
  if (ranges.empty()) return false;
  return ranges.front().lower <= summary.smallest || ranges.back().upper > summary.largest;
}

// First and last key of an item; nothing when it is malformed.
std::optional<std::pair<Bytes, Bytes>> bounds_of(const Item& item) {
  if (item.type() == ItemType::Single) {
    Bytes room;
    const auto entry = parse_single(item.contents(), room);
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
  // `ranges` are those in the file.
  OrderedSearch(const ValueTableReader& values, const ValueTableSummary& summary,
                TableCache& tables, const Version& version, const std::set<FileNumber>& lost,
                std::span<const RangeDelete> ranges)
      : values_(values),
        summary_(summary),
        tables_(tables),
        version_(version),
        lost_(lost),
        ranges_(ranges),
        seen_(summary.items.size()) {}

  Result<std::optional<ErasedItems>> run() {
    found_.summary_names_range = names_range(summary_, ranges_);
    for (const RangeDelete& range : ranges_) {
      EC_TRY(search(range));
      if (unclear_) return {std::nullopt};
    }
    return {std::move(found_)};
  }

 private:
  using Bounds = std::pair<Bytes, Bytes>;
  // Each item is read once to know its bounds, however many ranges are looked for.
  struct Seen {
    bool known = false;
    std::optional<Bounds> bounds;  // none: it is blank
  };

  // The bounds of the first item from `index` on that is not blank; `index` moves there. Null when
  // there is none, or when it cannot be told.
  Result<const Bounds*> bounds_from(std::size_t& index) {
    for (; index < summary_.items.size(); ++index) {
      Seen& seen = seen_[index];
      if (!seen.known) EC_TRY(see(summary_.items[index], seen));
      if (unclear_) return {nullptr};
      if (seen.bounds) return {&*seen.bounds};
    }
    return {nullptr};
  }

  Status see(const ValuePointer& pointer, Seen& seen) {
    const Result<Item> item = values_.read(pointer);
    seen.known = true;
    if (item.ok()) {
      seen.bounds = bounds_of(*item);
      unclear_ = !seen.bounds;
      return ok();
    }
    const StatusCode code = item.status().code();
    if (code != StatusCode::NotFound && code != StatusCode::Corruption) return item.status();
    unclear_ = code == StatusCode::NotFound || !values_.reads_blank(pointer);
    return ok();
  }

  Status search(const RangeDelete& range) {
    // The first item that ends at or behind the begin of the range lies in [low, high].
    std::size_t low = first_;
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
    first_ = low;  // the ranges are in order, too
    for (std::size_t at = low; at < summary_.items.size(); ++at) {
      EC_ASSIGN_OR_RETURN(const auto bounds, bounds_from(at));
      if (unclear_ || !bounds || bounds->first >= range.upper) return ok();
      if (at < taken_end_) continue;  // it reaches over two ranges
      taken_end_ = at + 1;
      EC_TRY(take(summary_.items[at], *bounds));
    }
    return ok();
  }

  Status take(const ValuePointer& pointer, const Bounds& bounds) {
    EC_ASSIGN_OR_RETURN(const Item item, values_.read(pointer));
    if (item_holds(item, ranges_) == false) return ok();
    EC_ASSIGN_OR_RETURN(const bool live, is_live(pointer, bounds.first));
    unclear_ = unclear_ || live;
    found_.items.push_back(pointer);
    found_.bytes += pointer.size_bytes;
    return ok();
  }

  Result<bool> is_live(const ValuePointer& pointer, ByteView first) {
    for (const TablePointer& table : version_.level0) {
      EC_ASSIGN_OR_RETURN(const bool leads, leads_to(table, pointer, first));
      if (leads) return true;
    }
    const auto tree = version_.trees.find(namespace_of(first));
    if (tree == version_.trees.end()) return false;
    for (const Run& run : tree->second) {
      const TablePointer* const table = run.find(first);
      if (table == nullptr) continue;
      EC_ASSIGN_OR_RETURN(const bool leads, leads_to(*table, pointer, first));
      if (leads) return true;
    }
    return false;
  }

  Result<bool> leads_to(const TablePointer& table, const ValuePointer& pointer, ByteView first) {
    if (lost_.contains(table->number) || ByteView(table->smallest) > first ||
        ByteView(table->largest) < first)
      return false;
    if (std::none_of(
            table->value_files.begin(), table->value_files.end(),
            [&](const ValueFileUse& use) { return use.file_number == pointer.file_number; }))
      return false;
    RecordCursor records = tables_.records({table}, first);
    EC_TRY(records.status());
    return records.valid() && records.record().pointer.file_number == pointer.file_number &&
           records.record().pointer.offset_bytes == pointer.offset_bytes;
  }

  const ValueTableReader& values_;
  const ValueTableSummary& summary_;
  TableCache& tables_;
  const Version& version_;
  const std::set<FileNumber>& lost_;
  const std::span<const RangeDelete> ranges_;
  ErasedItems found_;
  std::vector<Seen> seen_;  // by item
  std::size_t first_ = 0;   // no item before it reaches to the range that is looked for
  std::size_t taken_end_ = 0;
  bool unclear_ = false;
};

}  // namespace

Result<LiveItems> find_live_items(TableCache& tables, const Version& version,
                                  const std::set<FileNumber>& files,
                                  const std::set<FileNumber>& lost) {
  LiveItems live;
  for (const FileNumber number : files) live[number];
  for (const TablePointer& table : version.tables) {
    const bool leads_there =
        std::any_of(table->value_files.begin(), table->value_files.end(),
                    [&](const ValueFileUse& use) { return files.contains(use.file_number); });
    if (!leads_there || lost.contains(table->number)) continue;
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
                                      std::span<const RangeDelete> ranges, Blanks blanks) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  ErasedItems erased;
  const std::vector<RangeDelete> inside = ranges_in(summary, ranges);
  if (inside.empty()) return erased;
  const bool end_may_be_old = blanks == Blanks::Uncertain && place.keys == nullptr;
  erased.summary_names_range = end_may_be_old || names_range(summary, inside);
  for (const ValuePointer& pointer : summary.items) {
    if (std::binary_search(live.begin(), live.end(), pointer.offset_bytes)) continue;
    const Result<Item> item = values->read(pointer);
    // Without its key nobody can tell what it was; it goes, too.
    const bool lost = item.status().code() == StatusCode::Corruption ||
                      item.status().code() == StatusCode::NotFound;
    if (!item.ok() && !lost) return item.status();
    if (!item.ok() && blanks == Blanks::Durable && values->reads_blank(pointer)) continue;
    // What cannot be read nobody will miss.
    if (item.ok() && item_holds(*item, inside) == false) continue;
    erased.items.push_back(pointer);
    erased.bytes += pointer.size_bytes;
  }
  return erased;
}

Result<std::optional<ErasedItems>> search_erased_items(FileSystem& file_system,
                                                       const ValueFilePlace& place,
                                                       TableCache& tables, const Version& version,
                                                       const std::set<FileNumber>& lost,
                                                       std::span<const RangeDelete> ranges) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  const std::vector<RangeDelete> inside = ranges_in(summary, ranges);
  if (inside.empty()) return {ErasedItems()};
  if (!summary.ascending) return {std::nullopt};
  return OrderedSearch(*values, summary, tables, version, lost, inside).run();
}

Result<FileBytes> end_without_keys(FileSystem& file_system, const ValueFilePlace& place) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  FileBytes end;
  EC_ASSIGN_OR_RETURN(end.bytes, values->end_without_keys());
  end.offset = values->file().size_bytes() - end.bytes.size();
  return end;
}

Result<bool> lies_beside(FileSystem& file_system, const ValueFilePlace& place,
                         std::span<const RangeDelete> ranges) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  return ranges_in(summary, ranges).empty();
}

}  // namespace edgecase::engine
