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
  return ValueTableReader::open(std::move(file), place.store_id, place.number);
}

bool touches(const ValueTableSummary& summary, const RangeDelete& range) {
  return range.lower <= summary.largest && summary.smallest < range.upper &&
         summary.sequence_min < range.sequence;
}

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
  erased.summary_names_range =
      std::any_of(ranges.begin(), ranges.end(), [&](const RangeDelete& each) {
        const auto names = [&](const Bytes& key) { return key >= each.lower && key < each.upper; };
        return summary.sequence_min < each.sequence &&
               (names(summary.smallest) || names(summary.largest));
      });
  const bool touched = std::any_of(ranges.begin(), ranges.end(), [&](const RangeDelete& each) {
    return touches(summary, each);
  });
  if (!touched) return erased;
  for (const ValuePointer& pointer : summary.items) {
    if (std::binary_search(live.begin(), live.end(), pointer.offset_bytes)) continue;
    const Result<Item> item = values->read(pointer);
    if (!item.ok() && item.status().code() != StatusCode::Corruption) return item.status();
    if (!item.ok() && values->reads_blank(pointer)) continue;
    // What cannot be read nobody will miss.
    if (item.ok() && item_holds(*item, ranges) == false) continue;
    erased.items.push_back(pointer);
    erased.bytes += pointer.size_bytes;
  }
  return erased;
}

Result<bool> lies_beside(FileSystem& file_system, const ValueFilePlace& place,
                         std::span<const RangeDelete> ranges) {
  EC_ASSIGN_OR_RETURN(const auto values, open_values(file_system, place));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  return std::none_of(ranges.begin(), ranges.end(),
                      [&](const RangeDelete& each) { return touches(summary, each); });
}

}  // namespace edgecase::engine
