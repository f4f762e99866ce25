#include "table/table_cache.h"

#include "table/point_lookup.h"
#include "table/record_cursor.h"
#include "table/table_cursor.h"
#include "table/table_files.h"

namespace edgecase::engine {

TableCache::TableCache(FileSystem& file_system, std::string metadata_directory,
                       std::string values_directory, const StoreId& store_id, Limits limits,
                       KeyRing* keys)
    : files_(std::make_shared<TableFiles>(file_system, std::move(metadata_directory),
                                          std::move(values_directory), store_id, limits, keys)) {}

TableCache::~TableCache() = default;

Result<bool> TableCache::find(const TableMetadata& table, ByteView full_key, bool fill_cache,
                              FoundEntry& entry) {
  if (full_key < table.smallest || full_key > table.largest) return false;
  return find_in_table(*files_, table, full_key, fill_cache, entry);
}

Result<std::optional<FoundEntry>> TableCache::get(const std::shared_ptr<const TableMetadata>& table,
                                                  ByteView full_key, bool fill_cache) {
  std::optional<FoundEntry> entry(std::in_place);
  EC_ASSIGN_OR_RETURN(const bool is_there, find(*table, full_key, fill_cache, *entry));
  if (!is_there) entry.reset();
  return entry;
}

std::unique_ptr<EntryCursor> TableCache::cursor(std::shared_ptr<const TableMetadata> table,
                                                ByteView lower, ByteView upper, Direction direction,
                                                bool fill_cache) {
  return std::make_unique<TableCursor>(
      files_, std::move(table),
      TableCursorOptions{Bytes(lower), Bytes(upper), direction, fill_cache});
}

RecordCursor TableCache::records(std::vector<std::shared_ptr<const TableMetadata>> tables,
                                 ByteView from) {
  return RecordCursor(files_, std::move(tables), from);
}

void TableCache::add_value_file(const ValueFileMetadata& file) {
  files_->add_value_file(file);
}

void TableCache::forget(FileNumber number) {
  files_->forget(number);
}

void TableCache::forget_items(FileNumber number) {
  files_->forget_items(number);
}

const ReadCounters& TableCache::counters() const {
  return files_->counters();
}

void TableCache::set_aside(std::uint64_t bytes) {
  files_->set_aside(bytes);
}

std::uint64_t TableCache::used_bytes() const {
  return files_->used_bytes();
}

}  // namespace edgecase::engine
