#include "compaction/erasure_look.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

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

}  // namespace

Result<bool> holds_any_of(FileSystem& file_system, const std::string& path, const StoreId& store_id,
                          std::uint64_t file_number, std::span<const RangeDelete> ranges,
                          KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(auto file, file_system.open_file(path));
  EC_ASSIGN_OR_RETURN(const auto values,
                      ValueTableReader::open(std::move(file), store_id, file_number, keys));
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, values->summary());
  const bool touched = std::any_of(ranges.begin(), ranges.end(), [&](const RangeDelete& each) {
    return each.lower <= summary.largest && summary.smallest < each.upper;
  });
  if (!touched) return false;
  for (const ValuePointer& pointer : summary.items) {
    const Result<Item> item = values->read(pointer);
    // One whose key is destroyed holds nothing that anybody could read, but it is to go, too.
    if (item.status().code() == StatusCode::NotFound) return true;
    if (!item.ok()) return item.status();
    const std::optional<bool> held = item_holds(*item, ranges);
    if (!held) return values->damaged(pointer, "item is malformed");
    if (*held) return true;
  }
  return false;
}

}  // namespace edgecase::engine
