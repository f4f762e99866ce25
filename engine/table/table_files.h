// The open tables, cached blocks and items (BlockCache), and counters that TableCache and its
// cursors share. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/shared_map.h"
#include "edgecase/mutex.h"
#include "metadata/umeta_table.h"
#include "table/table_cache.h"
#include "table/window_sums.h"
#include "value/group.h"
#include "value/value_table.h"

namespace edgecase::engine {

enum class CacheClass : unsigned char { Item, Records };

// A bounded set of immutable objects read from files: blocks of metadata records, items and their
// pages. Sharded CLOCK: what was asked for since the hand last passed stays, a block of records for
// some passes more, because it leads to a hundred items and is dear to decode. Thread-safe; what is
// handed out lives on after it was evicted.

class BlockCache {
 public:
  explicit BlockCache(std::uint64_t capacity_bytes);
  ~BlockCache();

  // Null when it is not there. T is what was inserted for the file: files hold objects of one type.
  template <typename T>
  std::shared_ptr<const T> find(std::uint64_t file_number, std::uint64_t offset) {
    return std::static_pointer_cast<const T>(find_object(file_number, offset));
  }
  // The same; where it is not there, `admits` tells whether an item of so many bytes is worth
  // keeping: while there is room, and afterwards what was wanted twice within as many bytes of
  // misses as the cache has. Where all are wanted alike, taking each in for another would cost more
  // than it saves.
  template <typename T>
  std::shared_ptr<const T> find_or_note(std::uint64_t file_number, std::uint64_t offset,
                                        std::uint64_t bytes, bool& admits) {
    return std::static_pointer_cast<const T>(
        find_or_note_object(file_number, offset, bytes, admits));
  }
  // `bytes` is what the object takes. Objects larger than a part of the capacity are not kept.
  void insert(std::uint64_t file_number, std::uint64_t offset, std::shared_ptr<const void> object,
              std::uint64_t bytes, CacheClass cache_class);
  // The same in place of what is there; where it is too large, that stays.
  void replace(std::uint64_t file_number, std::uint64_t offset, std::shared_ptr<const void> object,
               std::uint64_t bytes, CacheClass cache_class);
  // What find_or_note() tells of what it does not find.
  bool admits(std::uint64_t file_number, std::uint64_t offset, std::uint64_t bytes);
  void erase(std::uint64_t file_number, std::uint64_t offset);
  void erase_file(std::uint64_t file_number);
  // What does not fit any more goes at once.
  void set_capacity(std::uint64_t capacity_bytes);
  std::uint64_t used_bytes() const;

 private:
  class Shard;

  std::shared_ptr<const void> find_object(std::uint64_t file_number, std::uint64_t offset);
  std::shared_ptr<const void> find_or_note_object(std::uint64_t file_number, std::uint64_t offset,
                                                  std::uint64_t bytes, bool& admits);
  Shard& shard_of(std::uint64_t file_number, std::uint64_t offset);

  std::vector<std::unique_ptr<Shard>> shards_;
};

// Open readers by file number, the least recently used closed first. Thread-safe; a reader that was
// handed out lives on after it left.
template <typename Reader>
class OpenFiles {
 public:
  // Keeps at least one, whatever the limits.
  OpenFiles(std::size_t count_max, std::uint64_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  // Null when it is not open.
  std::shared_ptr<const Reader> find(std::uint64_t number) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = place_of_.find(number);
    if (found == place_of_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->reader;
  }

  // Returns the reader that is kept: another thread may have been first.
  std::shared_ptr<const Reader> insert(std::uint64_t number, std::shared_ptr<const Reader> reader,
                                       std::uint64_t bytes) EC_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<const Reader>> closed;  // destroyed after the lock is gone
    MutexLock lock(mutex_);
    const auto found = place_of_.find(number);
    if (found != place_of_.end()) {
      closed.push_back(std::move(reader));
      auto kept = found->second->reader;
      lock.unlock();
      return kept;
    }
    recent_.push_front({number, reader, bytes});
    place_of_.emplace(number, recent_.begin());
    bytes_ += bytes;
    while (recent_.size() > 1 && (recent_.size() > count_max_ || bytes_ > bytes_max_)) {
      closed.push_back(std::move(recent_.back().reader));
      bytes_ -= recent_.back().bytes;
      place_of_.erase(recent_.back().number);
      recent_.pop_back();
    }
    lock.unlock();
    return reader;
  }

  void erase(std::uint64_t number) EC_EXCLUDES(mutex_) {
    std::shared_ptr<const Reader> closed;
    MutexLock lock(mutex_);
    const auto found = place_of_.find(number);
    if (found != place_of_.end()) {
      closed = std::move(found->second->reader);
      bytes_ -= found->second->bytes;
      recent_.erase(found->second);
      place_of_.erase(found);
    }
    lock.unlock();
  }

  std::uint64_t used_bytes() const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return bytes_;
  }

  std::size_t count() const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return recent_.size();
  }

 private:
  struct Open {
    std::uint64_t number = 0;
    std::shared_ptr<const Reader> reader;
    std::uint64_t bytes = 0;
  };

  const std::size_t count_max_;
  const std::uint64_t bytes_max_;
  mutable Mutex mutex_;
  std::list<Open> recent_ EC_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<std::uint64_t, typename std::list<Open>::iterator> place_of_
      EC_GUARDED_BY(mutex_);
  std::uint64_t bytes_ EC_GUARDED_BY(mutex_) = 0;
};

// Blocks of records, or items, that the cache did not take in, the latest few: scans that follow
// each other, of a series each, begin in the same ones. Their bytes are taken from the cache.
// Thread-safe.
template <typename T>
class Latest {
 public:
  // They take a sixteenth of `cache_bytes` at most, and one a quarter of that: larger ones are read
  // anew.
  explicit Latest(std::uint64_t cache_bytes) : bytes_max_(cache_bytes / kShare) {}

  void resize(std::uint64_t cache_bytes) EC_EXCLUDES(mutex_) {
    std::list<Kept> gone;  // destroyed after the lock is gone
    MutexLock lock(mutex_);
    bytes_max_ = cache_bytes / kShare;
    shrink(gone);
  }
  bool takes(std::uint64_t bytes) const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return bytes <= bytes_max_ / 4;
  }

  // Null when it is not among them.
  std::shared_ptr<const T> find(FileNumber number, std::uint64_t offset) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (auto each = recent_.begin(); each != recent_.end(); ++each) {
      if (each->number != number || each->offset != offset) continue;
      recent_.splice(recent_.begin(), recent_, each);
      return each->object;
    }
    return nullptr;
  }
  // In place of what is there, and of what was not asked for the longest.
  void keep(FileNumber number, std::uint64_t offset, std::shared_ptr<const T> object)
      EC_EXCLUDES(mutex_) {
    const std::uint64_t bytes = object->memory_bytes();
    if (!takes(bytes)) return;
    std::list<Kept> gone;
    std::list<Kept> kept;
    kept.push_front({number, offset, bytes, std::move(object)});
    MutexLock lock(mutex_);
    for (auto each = recent_.begin(); each != recent_.end();)
      if (const auto at = each++; at->number == number && at->offset == offset) drop(at, gone);
    recent_.splice(recent_.begin(), kept);
    used_bytes_ += bytes;
    shrink(gone);
  }
  void forget(FileNumber number) EC_EXCLUDES(mutex_) {
    std::list<Kept> gone;
    MutexLock lock(mutex_);
    for (auto each = recent_.begin(); each != recent_.end();)
      if (const auto at = each++; at->number == number) drop(at, gone);
  }
  std::uint64_t used_bytes() const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return used_bytes_;
  }

 private:
  struct Kept {
    FileNumber number = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::shared_ptr<const T> object;
  };
  using Place = typename std::list<Kept>::iterator;

  static constexpr std::size_t kCount = 16;
  static constexpr std::uint64_t kShare = 16;

  void drop(Place place, std::list<Kept>& gone) EC_REQUIRES(mutex_) {
    used_bytes_ -= place->bytes;
    gone.splice(gone.begin(), recent_, place);
  }
  void shrink(std::list<Kept>& gone) EC_REQUIRES(mutex_) {
    while (recent_.size() > kCount || used_bytes_ > bytes_max_)
      drop(std::prev(recent_.end()), gone);
  }

  mutable Mutex mutex_;
  std::uint64_t bytes_max_ EC_GUARDED_BY(mutex_);
  std::list<Kept> recent_ EC_GUARDED_BY(mutex_);  // what was asked for last first
  std::uint64_t used_bytes_ EC_GUARDED_BY(mutex_) = 0;
};

// Larger items are read anew each time: they would push out too much else.
inline constexpr std::uint32_t kCachedItemMaxBytes = 64u << 10;

// What one cursor reads at once of a value file, once what it asked for has followed each other
// without a gap: twice as much each time, up to this.
inline constexpr std::uint32_t kReadAheadMaxBytes = 64u << 10;

// Bytes of a value file that a cursor will soon ask for. Owned by the cursor.
struct ReadAhead {
  std::uint64_t file_number = 0;
  std::uint64_t offset = 0;  // of the bytes
  Bytes bytes;               // as they lie in the file, the first `size` of them
  std::size_t size = 0;      // they never get fewer: that would be paid for by each that is longer
  std::uint64_t expected = 0;  // where the next one begins if it follows the last one
  std::size_t last_size = 0;   // of what was read last

  bool holds(const ValuePointer& pointer) const {
    const std::uint64_t end = pointer.offset_bytes + pointer.size_bytes;
    return file_number == pointer.file_number && pointer.offset_bytes >= offset &&
           end >= pointer.offset_bytes && end <= offset + size;
  }
  ByteView bytes_of(const ValuePointer& pointer) const {
    return ByteView(bytes).substr(static_cast<std::size_t>(pointer.offset_bytes - offset),
                                  pointer.size_bytes);
  }
  // `pointer` was read.
  void pass(const ValuePointer& pointer) { expected = pointer.offset_bytes + pointer.size_bytes; }
  // It was found elsewhere: what follows it is what the cursor wants next.
  void pass_by(const ValuePointer& pointer) {
    if (file_number == pointer.file_number) pass(pointer);
  }
  // How much to read, from `offset` on, so that `pointer`, of which the cursor wants what lies
  // within [around_begin, around_end), is there; 0: it is to be read by itself. Nothing is held
  // then.
  std::size_t size_to_read(const ValuePointer& pointer, std::uint64_t around_begin,
                           std::uint64_t around_end, std::uint64_t file_bytes, bool is_page);
  char* room_for(std::size_t wanted) {
    if (bytes.size() < wanted) bytes.resize(wanted);
    return bytes.data();
  }
};

inline std::size_t ReadAhead::size_to_read(const ValuePointer& pointer, std::uint64_t around_begin,
                                           std::uint64_t around_end, std::uint64_t file_bytes,
                                           bool is_page) {
  const std::uint64_t begin = pointer.offset_bytes;
  const std::uint64_t end = begin + pointer.size_bytes;
  const bool fits =
      around_begin <= begin && begin <= end && end <= around_end && around_end <= file_bytes;
  const std::uint64_t around = fits ? around_end - around_begin : 0;
  const bool follows = file_number == pointer.file_number && fits && begin == expected;
  const std::uint64_t more =
      follows ? std::min<std::uint64_t>(2 * last_size, kReadAheadMaxBytes) : 0;
  file_number = pointer.file_number;
  expected = end;
  offset = around_begin;
  last_size = static_cast<std::size_t>(std::min(std::max(more, around), file_bytes - around_begin));
  size = 0;
  const bool is_alone = pointer.size_bytes >= last_size;
  return is_alone && (!is_page || !fits) ? 0 : last_size;
}

// The page that a cursor looks at: the cache's, or among what was read ahead.
struct CursorPage {
  std::shared_ptr<const Item> kept;
  Bytes opened;    // of a sealed one, or one that was read by itself
  Bytes unpacked;  // of a packed one
};

// A page that the cache has or takes in, or what was read of one that it does not.
struct PageBuffer {
  std::shared_ptr<const Item> kept;
  std::array<char, 4096> bytes;
  Bytes unpacked;  // of a packed one
};

class TableFiles {
 public:
  TableFiles(FileSystem& file_system, std::string metadata_directory, std::string values_directory,
             const StoreId& store_id, TableCache::Limits limits, KeyRing* keys);

  // Opens on first use, and checks that the file is the one `table` describes.
  Result<std::shared_ptr<const UMetaReader>> table(const TableMetadata& table);
  Result<std::shared_ptr<const UMetaBlock>> block(const UMetaReader& table, std::size_t index,
                                                  bool fill_cache);
  // For whoever walks along it once: neither parsed nor left in the cache, if it was not there.
  Result<std::shared_ptr<const UMetaBlock>> walked_block(const UMetaReader& table,
                                                         std::size_t index);
  // With `ahead`, which may be null, items behind this one are read with it where that pays.
  Result<std::shared_ptr<const Item>> item(const UMetaRecord& record, bool fill_cache,
                                           ReadAhead* ahead = nullptr);
  // For whoever walks along them once: not left in memory, if it was not there.
  Result<std::shared_ptr<const Item>> walked_item(const UMetaRecord& record,
                                                  ReadAhead* ahead = nullptr);
  // One page of a plain group, for a cursor; it is answered until that asks for another page or
  // item. Where a call of the system costs more than the copy, the pages of the group that lie in
  // `direction` of it are read with it.
  Result<ByteView> page(const UMetaRecord& record, const PagePlace& place, bool fill_cache,
                        CursorPage& page, ReadAhead& ahead, Direction direction);
  // The same for one look at it, which lies in `buffer` then.
  Result<ByteView> page(const UMetaRecord& record, const PagePlace& place, bool fill_cache,
                        PageBuffer& buffer);
  // The item of a record of a single Put, to be read in pieces.
  Result<std::unique_ptr<LargeValue>> large_value(const UMetaRecord& record);
  // Whether it opens, as far as its head tells.
  Result<bool> opens(const UMetaRecord& record);
  // The entry of a Single, whose key is `full_key`, if its key was not destroyed.
  Result<bool> single(const UMetaRecord& record, ByteView full_key, bool fill_cache,
                      FoundEntry& entry);
  // Whether single() reads this one to where it is wanted, from a mapped file: a cursor that comes
  // by then needs neither the cache nor memory for each.
  bool reads_in_place(const UMetaRecord& record) const {
    return map_files_ && keys_ == nullptr && record.type == ItemType::Single && record.deletes == 0;
  }
  // An error for what the record and its item disagree on.
  Status disagreement(const UMetaRecord& record) const;

  void add_value_file(const ValueFileMetadata& file);
  void forget(FileNumber number);
  void forget_items(FileNumber number);

  KeptSums& sums() { return sums_; }

  void set_aside(std::uint64_t bytes);
  void resize(std::uint64_t cache_bytes);

  ReadCounters& counters() { return counters_; }
  std::uint64_t used_bytes() const {
    return cache_.used_bytes() + tables_.used_bytes() + latest_bytes();
  }

 private:
  std::uint64_t latest_bytes() const {
    return latest_blocks_.used_bytes() + latest_items_.used_bytes();
  }
  std::shared_ptr<const UMetaBlock> cached_block(const UMetaReader& table, std::size_t index);
  // What it takes to open a value file. Stores of terabytes have many.
  struct KnownValueFile {
    std::uint64_t size_bytes = 0;
    NamespaceId namespace_id = 0;
    Placement placement = Placement::Values;
  };
  std::optional<KnownValueFile> find_value_file(FileNumber number) const EC_EXCLUDES(mutex_);
  Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) const;
  std::string value_path(FileNumber number, Placement placement) const;
  Result<std::shared_ptr<const ValueTableReader>> values(FileNumber number);
  // What is to be read of a value file: an item, or a page of one.
  struct Wanted {
    ValuePointer pointer;
    bool is_page = false;
    // What a cursor will ask for next, `pointer` included.
    std::uint64_t around_begin = 0;
    std::uint64_t around_end = 0;
  };
  static Wanted wanted_item(const UMetaRecord& record);
  static Wanted wanted_page(const UMetaRecord& record, const PagePlace& place);
  // Where tables are mapped and not sealed a page is as soon read as found in the cache.
  bool caches_pages() const { return !map_files_ || keys_ != nullptr; }
  std::shared_ptr<const Item> find_cached(const ValuePointer& pointer, bool fill_cache, bool& keep);
  Result<std::shared_ptr<const Item>> find(const Wanted& wanted, bool fill_cache, ReadAhead* ahead);
  Result<std::shared_ptr<const Item>> load(const Wanted& wanted, bool keep, ReadAhead* ahead);
  // A series group: from the latest, or read, and kept among them.
  Result<std::shared_ptr<const Item>> latest_item(const Wanted& wanted, ReadAhead* ahead);
  // What `read` answers of the open file; asks again once it was opened anew when its drive was
  // away.
  template <typename Answer, typename Read>
  Result<Answer> from_values(FileNumber number, const Read& read) {
    return from_open<Answer>(number, nullptr, read);
  }
  template <typename Answer, typename Read>
  Result<Answer> from_open(FileNumber number, std::shared_ptr<const ValueTableReader> table,
                           const Read& read);
  // The file, if it is open, and told what will be read of it soon.
  std::shared_ptr<const ValueTableReader> expect(const ValuePointer& pointer);
  // The cache has what indexes, the latest blocks and items, and others leave it: half at least.
  void fit_cache() EC_EXCLUDES(mutex_);
  void count_read(const ValueTableReader& table, std::uint64_t bytes);
  Result<Item> read(const ValueTableReader& table, const Wanted& wanted);
  bool get_ahead(const ValueTableReader& table, const Wanted& wanted, ReadAhead& ahead);
  Result<Item> read_ahead(const ValueTableReader& table, const Wanted& wanted, ReadAhead& ahead);
  Result<ByteView> stored_page(const UMetaRecord& record, const PagePlace& place, bool fill_cache,
                               CursorPage& page, ReadAhead& ahead, Direction direction);
  Result<ByteView> stored_page(const UMetaRecord& record, const PagePlace& place, bool fill_cache,
                               PageBuffer& buffer);
  Result<ByteView> read_page_ahead(const ValueTableReader& table, const Wanted& wanted,
                                   CursorPage& page, ReadAhead& ahead);
  Result<ByteView> read_page_alone(const ValueTableReader& table, const Wanted& wanted,
                                   CursorPage& page);
  void keep_item(const ValuePointer& pointer, std::shared_ptr<const Item> item);
  Result<std::shared_ptr<const ValueTableReader>> open_values(FileNumber number);

  FileSystem& file_system_;
  const std::string metadata_directory_;
  const std::string values_directory_;
  const StoreId store_id_;
  KeyRing* const keys_;  // null: not encrypted
  const bool map_files_;
  BlockCache cache_;
  KeptSums sums_{cache_};
  Latest<UMetaBlock> latest_blocks_;
  Latest<Item> latest_items_;  // series groups alone
  OpenFiles<UMetaReader> tables_;
  OpenFiles<ValueTableReader> values_;
  ReadCounters counters_;
  mutable Mutex mutex_;
  SharedMap<KnownValueFile> value_files_ EC_GUARDED_BY(mutex_);
  std::uint64_t value_bytes_ EC_GUARDED_BY(mutex_) = 0;  // of all of them
  std::uint64_t set_aside_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t cache_bytes_
      EC_GUARDED_BY(mutex_);                      // what the cache has where nobody else takes any
  std::uint64_t capacity_ EC_GUARDED_BY(mutex_);  // of the cache
};

// What reading an item answers when the key it was sealed with is destroyed.
inline bool is_destroyed(const Status& status) {
  return status.code() == StatusCode::NotFound;
}

}  // namespace edgecase::engine
