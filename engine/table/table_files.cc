#include "table/table_files.h"

#include <algorithm>
#include <utility>

#include "file/file_names.h"
#include "value/value_item.h"

namespace edgecase::engine {
namespace {

// Indexes of open tables may take this part of the cache's bytes; what they do not take is the
// cache's.
constexpr std::uint64_t kIndexShare = 4;
// In steps of which what others take is taken from the cache.
constexpr std::uint64_t kFitBytes = 64u << 10;
// The share of metadata tables among open files; the rest are value files.
constexpr std::size_t kTablesShare = 8;

}  // namespace

TableFiles::TableFiles(FileSystem& file_system, std::string metadata_directory,
                       std::string values_directory, const StoreId& store_id,
                       TableCache::Limits limits, KeyRing* keys)
    : file_system_(file_system),
      metadata_directory_(std::move(metadata_directory)),
      values_directory_(std::move(values_directory)),
      store_id_(store_id),
      keys_(keys),
      map_files_(limits.map_files),
      cache_(limits.cache_bytes),
      latest_blocks_(limits.cache_bytes),
      latest_items_(limits.cache_bytes),
      tables_(std::max<std::size_t>(1, limits.open_files / kTablesShare),
              limits.cache_bytes / kIndexShare),
      values_(std::max<std::size_t>(1, limits.open_files - limits.open_files / kTablesShare),
              UINT64_MAX),
      cache_bytes_(limits.cache_bytes),
      capacity_(limits.cache_bytes) {}

Result<std::unique_ptr<RandomAccessFile>> TableFiles::open(const std::string& path) const {
  if (!map_files_) return file_system_.open_file(path);
  std::uint64_t store_bytes = 0;
  {
    MutexLock lock(mutex_);
    store_bytes = value_bytes_;
  }
  return file_system_.open_mapped(path, store_bytes);
}

Result<std::shared_ptr<const UMetaReader>> TableFiles::table(const TableMetadata& table) {
  if (auto open = tables_.find(table.number)) return open;
  const std::string path = metadata_table_path(metadata_directory_, table.number);
  auto opened = open(path);
  if (opened.status().code() == StatusCode::NotFound)
    return opened.status().as(StatusCode::Corruption);
  EC_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, std::move(opened));
  if (file->size_bytes() != table.size_bytes)
    return corruption_at(path, file->size_bytes(),
                         "ends here, not at byte " + std::to_string(table.size_bytes));
  EC_ASSIGN_OR_RETURN(std::shared_ptr<const UMetaReader> reader,
                      UMetaReader::open(std::move(file), store_id_, table.number, keys_));
  if (reader->properties().totals.entries != table.entry_count ||
      reader->properties().totals.items != table.item_count)
    return corruption_at(path, 0, "is not the table the manifest names");
  counters_.count_metadata(table.size_bytes - reader->blocks().back().offset -
                           reader->blocks().back().size);
  const std::size_t bytes = reader->memory_bytes();
  auto kept = tables_.insert(table.number, std::move(reader), bytes);
  fit_cache();
  return kept;
}

// Null: it has to be read.
std::shared_ptr<const UMetaBlock> TableFiles::cached_block(const UMetaReader& table,
                                                           std::size_t index) {
  const UMetaReader::BlockHandle& handle = table.blocks()[index];
  const FileNumber file = table.identity().file_number;
  auto cached = cache_.find<UMetaBlock>(file, handle.offset);
  if (cached == nullptr) cached = latest_blocks_.find(file, handle.offset);
  (cached != nullptr ? counters_.cache_hits : counters_.cache_misses).fetch_add(1);
  if (cached != nullptr) return cached;
  counters_.count_metadata(handle.size);
  counters_.metadata_block_loads.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

Result<std::shared_ptr<const UMetaBlock>> TableFiles::block(const UMetaReader& table,
                                                            std::size_t index, bool fill_cache) {
  if (auto cached = cached_block(table, index)) return cached;
  EC_ASSIGN_OR_RETURN(std::shared_ptr<const UMetaBlock> block, table.read_block(index));
  const FileNumber file = table.identity().file_number;
  const std::uint64_t at = table.blocks()[index].offset;
  if (fill_cache) {
    cache_.insert(file, at, block, block->memory_bytes(), CacheClass::Records);
  } else {
    latest_blocks_.keep(file, at, block);
    fit_cache();
  }
  return block;
}

Result<std::shared_ptr<const UMetaBlock>> TableFiles::walked_block(const UMetaReader& table,
                                                                   std::size_t index) {
  if (auto cached = cached_block(table, index)) return cached;
  return table.read_walked_block(index);
}

std::optional<TableFiles::KnownValueFile> TableFiles::find_value_file(FileNumber number) const {
  MutexLock lock(mutex_);
  const auto found = value_files_.find(number);
  if (found == value_files_.end()) return std::nullopt;
  return found->second;
}

std::string TableFiles::value_path(FileNumber number, Placement placement) const {
  return value_table_path(metadata_directory_, values_directory_, placement, number);
}

Result<std::shared_ptr<const ValueTableReader>> TableFiles::values(FileNumber number) {
  if (auto open = values_.find(number)) return open;
  return open_values(number);
}

Result<std::shared_ptr<const ValueTableReader>> TableFiles::open_values(FileNumber number) {
  const auto known = find_value_file(number);
  if (!known) return corruption("value file " + std::to_string(number) + " is in no manifest");
  const std::string path = value_path(number, known->placement);
  const Drive drive = drive_of(known->placement);
  auto file = open(path).on(drive);
  // The file's drive may be missing, or the file alone; NotFound would be a key that was destroyed.
  if (file.status().code() == StatusCode::NotFound)
    return file.status().as(StatusCode::Unavailable);
  if (!file.ok()) return file.status();
  // One that is cut gives what lies before that: each item has a checksum of its own.
  EC_ASSIGN_OR_RETURN(std::shared_ptr<const ValueTableReader> reader,
                      ValueTableReader::open(*std::move(file), store_id_, number, keys_).on(drive));
  const ValueTableHead& head = reader->head();
  if (head.namespace_id != known->namespace_id || head.placement != known->placement)
    return corruption_at(path, kTableHeadBytes, "is not the table the manifest names").on(drive);
  return values_.insert(number, std::move(reader), 0);
}

void TableFiles::count_read(const ValueTableReader& table, std::uint64_t bytes) {
  counters_.value_reads.fetch_add(1, std::memory_order_relaxed);
  const bool is_of_values = table.head().placement == Placement::Values;
  is_of_values ? counters_.count_values(bytes) : counters_.count_metadata(bytes);
}

Result<Item> TableFiles::read(const ValueTableReader& table, const Wanted& wanted) {
  count_read(table, wanted.pointer.size_bytes);
  return wanted.is_page ? table.read_page(wanted.pointer) : table.read(wanted.pointer);
}

// Whether what is wanted is read ahead, now or before; if not, it is to be read by itself.
bool TableFiles::get_ahead(const ValueTableReader& table, const Wanted& wanted, ReadAhead& ahead) {
  const ValuePointer& pointer = wanted.pointer;
  if (!ahead.holds(pointer)) {
    const std::size_t size = ahead.size_to_read(pointer, wanted.around_begin, wanted.around_end,
                                                table.file().size_bytes(), wanted.is_page);
    if (size == 0) return false;
    count_read(table, size);
    auto got = table.file().read(ahead.offset, size, ahead.room_for(size));
    // What was not asked for may be what failed.
    if (!got.ok() || pointer.offset_bytes + pointer.size_bytes > ahead.offset + *got) return false;
    ahead.size = *got;
  }
  ahead.pass(pointer);
  return true;
}

Result<Item> TableFiles::read_ahead(const ValueTableReader& table, const Wanted& wanted,
                                    ReadAhead& ahead) {
  if (!get_ahead(table, wanted, ahead)) return read(table, wanted);
  return table.check(wanted.pointer, Bytes(ahead.bytes_of(wanted.pointer)));
}

Result<ByteView> TableFiles::read_page_ahead(const ValueTableReader& table, const Wanted& wanted,
                                             CursorPage& page, ReadAhead& ahead) {
  if (!get_ahead(table, wanted, ahead)) return read_page_alone(table, wanted, page);
  return table.take_page(wanted.pointer, ahead.bytes_of(wanted.pointer), page.opened);
}

Result<ByteView> TableFiles::read_page_alone(const ValueTableReader& table, const Wanted& wanted,
                                             CursorPage& page) {
  EC_ASSIGN_OR_RETURN(Item alone, read(table, wanted));
  page.opened = std::move(alone.bytes);
  return ByteView(page.opened);
}

TableFiles::Wanted TableFiles::wanted_item(const UMetaRecord& record) {
  const std::uint64_t offset = record.pointer.offset_bytes;
  return {record.pointer, false, offset, offset + record.pointer.size_bytes};
}

Result<std::shared_ptr<const Item>> TableFiles::item(const UMetaRecord& record, bool fill_cache,
                                                     ReadAhead* ahead) {
  const bool is_latest = !fill_cache && record.type == ItemType::SeriesGroup;
  return is_latest ? latest_item(wanted_item(record), ahead)
                   : find(wanted_item(record), fill_cache, ahead);
}

Result<std::shared_ptr<const Item>> TableFiles::walked_item(const UMetaRecord& record,
                                                            ReadAhead* ahead) {
  return find(wanted_item(record), false, ahead);
}

Result<std::shared_ptr<const Item>> TableFiles::latest_item(const Wanted& wanted,
                                                            ReadAhead* ahead) {
  const ValuePointer& pointer = wanted.pointer;
  auto latest = latest_items_.find(pointer.file_number, pointer.offset_bytes);
  if (latest == nullptr) {
    EC_ASSIGN_OR_RETURN(latest, find(wanted, false, ahead));
    if (latest->marks != nullptr) return latest;  // the cache keeps it
  } else {
    counters_.cache_hits.fetch_add(1, std::memory_order_relaxed);
    if (ahead != nullptr) ahead->pass_by(pointer);
    const bool has_room = latest_items_.takes(latest->memory_bytes() * 9 / 8);
    if (latest->marks != nullptr || !has_room) return latest;
    // Whoever comes again wants another series of it.
    latest = std::make_shared<const Item>(Item{latest->bytes, SeriesMarks::of(latest->contents())});
  }
  latest_items_.keep(pointer.file_number, pointer.offset_bytes, latest);
  fit_cache();
  return latest;
}

TableFiles::Wanted TableFiles::wanted_page(const UMetaRecord& record, const PagePlace& place) {
  const std::uint64_t begin = record.pointer.offset_bytes + place.offset;
  return {{record.pointer.file_number, begin, static_cast<std::uint32_t>(place.size)},
          true,
          begin,
          begin + place.size};
}

Result<ByteView> TableFiles::page(const UMetaRecord& record, const PagePlace& place,
                                  bool fill_cache, CursorPage& page, ReadAhead& ahead,
                                  Direction direction) {
  EC_ASSIGN_OR_RETURN(const ByteView stored,
                      stored_page(record, place, fill_cache, page, ahead, direction));
  ByteView unpacked;
  if (!unpack_page(stored, page.unpacked, unpacked)) return disagreement(record);
  return unpacked;
}

Result<ByteView> TableFiles::page(const UMetaRecord& record, const PagePlace& place,
                                  bool fill_cache, PageBuffer& buffer) {
  EC_ASSIGN_OR_RETURN(const ByteView stored, stored_page(record, place, fill_cache, buffer));
  ByteView unpacked;
  if (!unpack_page(stored, buffer.unpacked, unpacked)) return disagreement(record);
  return unpacked;
}

// Opened, but packed where it lies packed in the file.
Result<ByteView> TableFiles::stored_page(const UMetaRecord& record, const PagePlace& place,
                                         bool fill_cache, CursorPage& page, ReadAhead& ahead,
                                         Direction direction) {
  Wanted wanted = wanted_page(record, place);
  const ValuePointer& pointer = wanted.pointer;
  if (!map_files_) {
    if (direction == Direction::Forward) {
      wanted.around_end = record.pointer.offset_bytes + record.pointer.size_bytes;
    } else {
      wanted.around_begin = record.pointer.offset_bytes;
    }
  }
  page.kept = nullptr;
  // A reader of everything finds little in the cache, and leaves nothing there.
  const bool is_next = !fill_cache && ahead.holds(pointer);
  bool keep = false;
  if (!is_next && caches_pages()) page.kept = find_cached(pointer, fill_cache, keep);
  if (page.kept != nullptr) {
    ahead.pass_by(pointer);
    return ByteView(page.kept->bytes);
  }
  ReadAhead* first_ahead = &ahead;
  EC_ASSIGN_OR_RETURN(const ByteView bytes,
                      from_values<ByteView>(pointer.file_number, [&](const auto& table) {
                        // The second time what failed is left alone.
                        ReadAhead* const once = std::exchange(first_ahead, nullptr);
                        return once != nullptr ? read_page_ahead(*table, wanted, page, *once)
                                               : read_page_alone(*table, wanted, page);
                      }));
  if (!keep) return bytes;
  page.kept = std::make_shared<const Item>(Item{Bytes(bytes)});
  keep_item(pointer, page.kept);
  return ByteView(page.kept->bytes);
}

Result<ByteView> TableFiles::stored_page(const UMetaRecord& record, const PagePlace& place,
                                         bool fill_cache, PageBuffer& buffer) {
  const Wanted wanted = wanted_page(record, place);
  const ValuePointer& pointer = wanted.pointer;
  auto open = expect(pointer);
  bool keep = false;
  buffer.kept = caches_pages() ? find_cached(pointer, fill_cache, keep) : nullptr;
  if (buffer.kept == nullptr) {
    if (!keep && place.size <= buffer.bytes.size()) {
      return from_open<ByteView>(pointer.file_number, std::move(open), [&](const auto& table) {
        count_read(*table, pointer.size_bytes);
        return table->read_page(pointer, buffer.bytes.data());
      });
    }
    EC_ASSIGN_OR_RETURN(buffer.kept, load(wanted, keep, nullptr));
  }
  return ByteView(buffer.kept->bytes);
}

Result<bool> TableFiles::single(const UMetaRecord& record, ByteView full_key, bool fill_cache,
                                FoundEntry& entry) {
  const ValuePointer& pointer = record.pointer;
  auto open = expect(pointer);
  bool keep = false;
  auto item = caches_pages() ? find_cached(pointer, fill_cache, keep) : nullptr;
  if (item == nullptr && !keep && keys_ == nullptr && record.deletes == 0) {
    entry.sequence = record.sequence_max;
    entry.kind = EntryKind::Put;
    EC_ASSIGN_OR_RETURN(
        const bool agrees,
        from_open<bool>(pointer.file_number, std::move(open), [&](const auto& table) {
          count_read(*table, pointer.size_bytes);
          return table->read_put(pointer, record.sequence_max, full_key, entry.value);
        }));
    if (!agrees) return disagreement(record);
    return true;
  }
  if (item == nullptr) {
    auto loaded = load({pointer, false, 0, 0}, keep, nullptr);
    if (is_destroyed(loaded.status())) return false;
    if (!loaded.ok()) return loaded.status();
    item = *std::move(loaded);
  }
  Bytes room;
  const auto found =
      item->type() == ItemType::Single ? parse_single(item->contents(), room) : std::nullopt;
  if (!found || found->full_key != full_key) return disagreement(record);
  entry.sequence = found->sequence;
  entry.kind = found->kind;
  entry.value = found->value;
  return true;
}

std::shared_ptr<const ValueTableReader> TableFiles::expect(const ValuePointer& pointer) {
  auto open = values_.find(pointer.file_number);
  if (open != nullptr) open->file().expect_read(pointer.offset_bytes, pointer.size_bytes);
  return open;
}

// `keep`: whether it is not there and the cache is to take it in.
std::shared_ptr<const Item> TableFiles::find_cached(const ValuePointer& pointer, bool fill_cache,
                                                    bool& keep) {
  const bool may_keep = fill_cache && pointer.size_bytes <= kCachedItemMaxBytes;
  keep = may_keep;
  auto cached = may_keep ? cache_.find_or_note<Item>(pointer.file_number, pointer.offset_bytes,
                                                     pointer.size_bytes, keep)
                         : cache_.find<Item>(pointer.file_number, pointer.offset_bytes);
  auto& count = cached != nullptr ? counters_.cache_hits : counters_.cache_misses;
  count.fetch_add(1, std::memory_order_relaxed);
  return cached;
}

Result<std::shared_ptr<const Item>> TableFiles::find(const Wanted& wanted, bool fill_cache,
                                                     ReadAhead* ahead) {
  bool keep = false;
  if (auto cached = find_cached(wanted.pointer, fill_cache, keep)) {
    if (ahead != nullptr) ahead->pass_by(wanted.pointer);
    return cached;
  }
  return load(wanted, keep, ahead);
}

// `table` is that file, or null.
template <typename Answer, typename Read>
Result<Answer> TableFiles::from_open(FileNumber number,
                                     std::shared_ptr<const ValueTableReader> table,
                                     const Read& read) {
  if (table == nullptr) {
    EC_ASSIGN_OR_RETURN(table, values(number));
  }
  Result<Answer> answer = read(table);
  if (answer.ok()) return answer;
  const Drive drive = drive_of(table->head().placement);
  if (answer.status().code() != StatusCode::IoError) return std::move(answer).on(drive);
  // A file that was opened before its drive was pulled fails for good, however well the drive is.
  values_.erase(number);
  EC_ASSIGN_OR_RETURN(table, values(number));
  return Result<Answer>(read(table)).on(drive);
}

Result<std::shared_ptr<const Item>> TableFiles::load(const Wanted& wanted, bool keep,
                                                     ReadAhead* ahead) {
  const ValuePointer& pointer = wanted.pointer;
  EC_ASSIGN_OR_RETURN(Item got, from_values<Item>(pointer.file_number, [&](const auto& table) {
                        // The second time what failed is left alone.
                        return ahead != nullptr
                                   ? read_ahead(*table, wanted, *std::exchange(ahead, nullptr))
                                   : read(*table, wanted);
                      }));
  if (keep && !wanted.is_page && got.type() == ItemType::SeriesGroup)
    got.marks = SeriesMarks::of(got.contents());
  auto item = std::make_shared<const Item>(std::move(got));
  if (keep) keep_item(pointer, item);
  return std::shared_ptr<const Item>(std::move(item));
}

void TableFiles::keep_item(const ValuePointer& pointer, std::shared_ptr<const Item> item) {
  const std::uint64_t bytes = item->memory_bytes();
  cache_.insert(pointer.file_number, pointer.offset_bytes, std::move(item), bytes,
                CacheClass::Item);
}

Result<std::unique_ptr<LargeValue>> TableFiles::large_value(const UMetaRecord& record) {
  const ValuePointer& pointer = record.pointer;
  const auto read = [&](const std::shared_ptr<const ValueTableReader>& table)
      -> Result<std::unique_ptr<LargeValue>> {
    // One that may be packed is no longer than a piece.
    if (pointer.size_bytes <= kPackedSingleMaxBytes) {
      auto entry = std::make_shared<FoundEntry>();
      EC_ASSIGN_OR_RETURN(const bool is_there, single(record, record.first, false, *entry));
      if (!is_there) return not_found("item was erased: its key is destroyed");
      return std::unique_ptr<LargeValue>(
          std::make_unique<MemoryValue>(entry->value, entry->sequence, entry));
    }
    count_read(*table, 2 * std::uint64_t{pointer.size_bytes});
    EC_ASSIGN_OR_RETURN(std::unique_ptr<LargeItem> item,
                        LargeItem::open(table, pointer, record.first));
    return std::unique_ptr<LargeValue>(std::move(item));
  };
  return from_values<std::unique_ptr<LargeValue>>(pointer.file_number, read);
}

Result<bool> TableFiles::opens(const UMetaRecord& record) {
  const auto look = [&](const std::shared_ptr<const ValueTableReader>& table) {
    return LargeItem::has_key(*table, record.pointer);
  };
  return from_values<bool>(record.pointer.file_number, look);
}

Status TableFiles::disagreement(const UMetaRecord& record) const {
  const FileNumber number = record.pointer.file_number;
  const auto known = find_value_file(number);
  const std::string path = known ? value_path(number, known->placement) : std::to_string(number);
  return corruption_at(path, record.pointer.offset_bytes,
                       "item is malformed or not what its metadata record says")
      .on(known ? drive_of(known->placement) : Drive::None);
}

void TableFiles::add_value_file(const ValueFileMetadata& file) {
  MutexLock lock(mutex_);
  const KnownValueFile known{file.size_bytes, file.namespace_id, file.placement};
  if (value_files_.emplace(file.number, known)) value_bytes_ += file.size_bytes;
}

void TableFiles::forget(FileNumber number) {
  tables_.erase(number);
  values_.erase(number);
  forget_items(number);
  MutexLock lock(mutex_);
  const auto known = value_files_.find(number);
  if (known == value_files_.end()) return;
  value_bytes_ -= known->second.size_bytes;
  value_files_.erase(number);
}

void TableFiles::forget_items(FileNumber number) {
  cache_.erase_file(number);
  sums_.forget(number);
  latest_blocks_.forget(number);
  latest_items_.forget(number);
}

void TableFiles::set_aside(std::uint64_t bytes) {
  {
    MutexLock lock(mutex_);
    set_aside_ = bytes;
  }
  fit_cache();
}

void TableFiles::resize(std::uint64_t cache_bytes) {
  {
    MutexLock lock(mutex_);
    cache_bytes_ = cache_bytes;
  }
  latest_blocks_.resize(cache_bytes);
  latest_items_.resize(cache_bytes);
  fit_cache();
}

void TableFiles::fit_cache() {
  MutexLock lock(mutex_);
  const std::uint64_t others = set_aside_ + tables_.used_bytes() + latest_bytes();
  const std::uint64_t taken =
      std::min((others + kFitBytes - 1) / kFitBytes * kFitBytes, cache_bytes_ / 2);
  if (cache_bytes_ - taken == capacity_) return;
  capacity_ = cache_bytes_ - taken;
  cache_.set_capacity(capacity_);
}

}  // namespace edgecase::engine
