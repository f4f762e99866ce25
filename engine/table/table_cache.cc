#include "table/table_cache.h"

#include <utility>

#include "table/record_cursor.h"
#include "table/table_cursor.h"
#include "table/table_files.h"

namespace edgecase::engine {
namespace {

// A cursor by itself, with all that it needs.
class OwningCursor final : public EntryCursor {
 public:
  OwningCursor(std::shared_ptr<TableFiles> files, std::shared_ptr<const TableMetadata> table,
               ByteView lower, ByteView upper, Direction direction, bool fill_cache,
               std::uint64_t large_value_bytes)
      : files_(std::move(files)), table_(std::move(table)), lower_(lower), upper_(upper) {
    cursor_.open(*files_, {&table_, 1}, {lower_, upper_, direction, fill_cache, large_value_bytes});
  }

  bool valid() const override { return cursor_.valid(); }
  const Status& status() const override { return cursor_.status(); }
  ByteView full_key() const override { return cursor_.full_key(); }
  Status load() override { return cursor_.load(); }
  SequenceNumber sequence() const override { return cursor_.sequence(); }
  EntryKind kind() const override { return cursor_.kind(); }
  ByteView value() const override { return cursor_.value(); }
  Result<std::unique_ptr<LargeValue>> large_value() override { return cursor_.large_value(); }
  void next() override { cursor_.next(); }
  std::span<const EntryView> loaded_run() override { return cursor_.loaded_run(); }
  void skip(std::size_t count) override { cursor_.skip(count); }
  void seek(ByteView full_key) override { cursor_.seek(full_key); }

 private:
  const std::shared_ptr<TableFiles> files_;
  const std::shared_ptr<const TableMetadata> table_;
  const Bytes lower_;
  const Bytes upper_;
  TableCursor cursor_;  // after what it borrows
};

}  // namespace

ThreadReads& counted_thread_reads() {
  thread_local ThreadReads reads;
  return reads;
}

TableCache::TableCache(FileSystem& file_system, std::string metadata_directory,
                       std::string values_directory, const StoreId& store_id, Limits limits,
                       KeyRing* keys)
    : files_(std::make_shared<TableFiles>(file_system, std::move(metadata_directory),
                                          std::move(values_directory), store_id, limits, keys)),
      pool_(std::make_shared<CursorPool>()) {}

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
                                                bool fill_cache, std::uint64_t large_value_bytes) {
  return std::make_unique<OwningCursor>(files_, std::move(table), lower, upper, direction,
                                        fill_cache, large_value_bytes);
}

LentCursors TableCache::lend_cursors() {
  return {files_, pool_};
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

void TableCache::resize(std::uint64_t cache_bytes) {
  files_->resize(cache_bytes);
}

std::uint64_t TableCache::used_bytes() const {
  return files_->used_bytes();
}

}  // namespace edgecase::engine
