#include "table/point_lookup.h"

#include <utility>

#include "base/coding.h"
#include "metadata/bloom_filter.h"
#include "table/item_reader.h"

namespace edgecase::engine {
namespace {

Result<bool> find_in_page_of(TableFiles& files, const UMetaPlace& at, ByteView full_key,
                             bool fill_cache, FoundEntry& entry) {
  const UMetaRecord& record = at.record;
  const auto place = find_page(record.pages, record.pointer.size_bytes, at.shared, full_key);
  if (!place) return files.disagreement(record);
  PageBuffer buffer;
  const auto page = files.page(record, *place, fill_cache, buffer);
  if (is_destroyed(page.status())) return false;
  if (!page.ok()) return page.status();
  EntryView found;
  bool is_there = false;
  if (!find_in_page(*page, user_key_of(full_key), record.sequence_max, found, is_there))
    return files.disagreement(record);
  if (!is_there) return false;
  entry.sequence = found.sequence;
  entry.kind = found.kind;
  entry.value = found.value;
  return true;
}

Result<bool> find_in_group(TableFiles& files, const UMetaRecord& record, ByteView full_key,
                           bool fill_cache, FoundEntry& entry) {
  auto item = files.item(record, fill_cache);
  if (is_destroyed(item.status())) return false;
  if (!item.ok()) return item.status();
  ItemReader reader;
  std::size_t index = 0;
  if (!reader.open(record, *std::move(item)) || !reader.lower_bound(full_key, index))
    return files.disagreement(record);
  if (index >= reader.entry_count()) return false;
  if (!reader.move_to(index)) return files.disagreement(record);
  const EntryView& found = reader.entry();
  if (found.full_key != full_key) return false;
  entry.sequence = found.sequence;
  entry.kind = found.kind;
  entry.value = found.value;
  return true;
}

// Asks no filter and reads one item, or one page of it.
Result<bool> find_in_item(TableFiles& files, const UMetaPlace& at, ByteView full_key,
                          bool fill_cache, FoundEntry& entry) {
  if (!at.record.pages.empty()) return find_in_page_of(files, at, full_key, fill_cache, entry);
  if (at.record.type == ItemType::Single)
    return files.single(at.record, full_key, fill_cache, entry);
  return find_in_group(files, at.record, full_key, fill_cache, entry);
}

bool filter_denies(TableFiles& files, const UMetaRecord& record, ByteView full_key) {
  if (record.filter.empty()) return false;
  files.counters().filter_probes.fetch_add(1, std::memory_order_relaxed);
  if (filter_may_contain(record.filter, *filter_hash(record.type, full_key))) return false;
  files.counters().filter_negatives.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

Result<bool> find_in_table(TableFiles& files, const TableMetadata& table, ByteView full_key,
                           bool fill_cache, FoundEntry& entry) {
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<const UMetaReader> reader, files.table(table));
  if (table.level == 0 && !reader->may_hold(full_key)) {
    files.counters().level0_skips.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const std::size_t block_index = reader->find_block(full_key);
  if (block_index == reader->blocks().size()) return false;
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<const UMetaBlock> block,
                      files.block(*reader, block_index, fill_cache));
  UMetaPlace at;
  UMetaCursor records;  // whose keys `at` views then
  switch (block->locate(full_key, at)) {
    case UMetaBlock::Sought::Here: break;
    case UMetaBlock::Sought::Nowhere: return false;
    case UMetaBlock::Sought::Unknown:
      records.open(block);
      if (!records.find(full_key))
        return corruption_at(reader->file().path(), reader->blocks()[block_index].offset,
                             "block ends before the key its index says");
      at.record = records.record();
      at.shared = shared_bytes(at.record.first, at.record.last);
      if (full_key < at.record.first) return false;
      break;
  }
  if (filter_denies(files, at.record, full_key)) return false;
  return find_in_item(files, at, full_key, fill_cache, entry);
}

}  // namespace edgecase::engine
