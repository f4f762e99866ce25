#include "table/table_cache.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "edgecase/mutex.h"
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

namespace {

constexpr std::uint64_t kShardBytesMin = 512u << 10;
constexpr std::uint64_t kShardCountMax = 16;
constexpr std::uint64_t kEntryOverheadBytes = 128;  // slot, map node, control block
// Passes of the hand that an object stays without being asked for again.
constexpr std::uint8_t kItemPasses = 1;
constexpr std::uint8_t kRecordsPasses = 4;
constexpr std::uint64_t kObjectShareMax = 4;  // no object over a quarter of its shard
// A shard remembers as many bytes of misses as its capacity, in places of so many; what is larger
// takes several, up to these.
constexpr std::uint64_t kBytesPerMiss = 128;
constexpr std::uint64_t kPlacesPerMissMax = 64;

struct Key {
  std::uint64_t file_number = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

std::uint64_t hash_of(const Key& key) {
  return mix64(key.file_number * 0x9e3779b97f4a7c15 + key.offset);
}

// Which slot holds a key: open addressing with linear probing, at most half full. A cell knows the
// low half of its key's hash, so that slots are looked at when they are the one.
class SlotIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // `is_it(slot)` tells whether the slot holds the key.
  template <typename IsIt>
  std::uint32_t find(std::uint64_t hash, const IsIt& is_it) const {
    const auto tag = static_cast<std::uint32_t>(hash);
    for (std::size_t at = tag & mask(); cells_[at].slot != kNone; at = (at + 1) & mask())
      if (cells_[at].tag == tag && is_it(cells_[at].slot)) return cells_[at].slot;
    return kNone;
  }

  // The key is not there yet.
  void insert(std::uint64_t hash, std::uint32_t slot) {
    if (2 * (count_ + 1) > cells_.size()) grow();
    place({static_cast<std::uint32_t>(hash), slot});
    ++count_;
  }

  // It is there.
  void erase(std::uint64_t hash, std::uint32_t slot) {
    std::size_t hole = static_cast<std::uint32_t>(hash) & mask();
    while (cells_[hole].slot != slot) hole = (hole + 1) & mask();
    // What was pushed behind its place moves up, so that no search ends early.
    for (std::size_t at = (hole + 1) & mask(); cells_[at].slot != kNone; at = (at + 1) & mask()) {
      const std::size_t home = cells_[at].tag & mask();
      if (((at - home) & mask()) < ((at - hole) & mask())) continue;
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole] = Cell();
    --count_;
  }

 private:
  struct Cell {
    std::uint32_t tag = 0;
    std::uint32_t slot = kNone;
  };

  std::size_t mask() const { return cells_.size() - 1; }
  void place(const Cell& cell) {
    std::size_t at = cell.tag & mask();
    while (cells_[at].slot != kNone) at = (at + 1) & mask();
    cells_[at] = cell;
  }
  void grow() {
    const std::vector<Cell> before = std::exchange(cells_, std::vector<Cell>(2 * cells_.size()));
    for (const Cell& cell : before)
      if (cell.slot != kNone) place(cell);
  }

  std::vector<Cell> cells_ = std::vector<Cell>(64);  // a power of two
  std::size_t count_ = 0;
};

}  // namespace

class BlockCache::Shard {
 public:
  explicit Shard(std::uint64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes), misses_(1 + capacity_bytes / kBytesPerMiss) {}

  std::shared_ptr<const void> find(const Key& key) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return find_locked(key, hash_of(key));
  }

  std::shared_ptr<const void> find_or_note(const Key& key, std::uint64_t bytes, bool& admits)
      EC_EXCLUDES(mutex_) {
    const std::uint64_t hash = hash_of(key);
    MutexLock lock(mutex_);
    auto found = find_locked(key, hash);
    admits = found == nullptr && note_miss(hash, bytes);
    return found;
  }

  bool admits(std::uint64_t hash, std::uint64_t bytes) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return note_miss(hash, bytes);
  }

  void insert(const Key& key, std::shared_ptr<const void> object, std::uint64_t bytes,
              CacheClass cache_class, bool replaces) EC_EXCLUDES(mutex_) {
    bytes += kEntryOverheadBytes;
    // Evicted objects are destroyed after the lock is gone.
    std::vector<std::shared_ptr<const void>> evicted;
    MutexLock lock(mutex_);
    if (bytes > capacity_bytes_ / kObjectShareMax) return;
    const std::uint32_t there = find_slot(key, hash_of(key));
    if (there != SlotIndex::kNone && !replaces) return;
    if (there != SlotIndex::kNone) evicted.push_back(release(there));
    while (used_bytes_ + bytes > capacity_bytes_) evicted.push_back(evict_one());
    std::size_t index = slots_.size();
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    const bool records = cache_class == CacheClass::Records;
    slots_[index] = {key, std::move(object), bytes, records ? kRecordsPasses : kItemPasses,
                     records ? kRecordsPasses : std::uint8_t{0}};
    index_.insert(hash_of(key), static_cast<std::uint32_t>(index));
    used_bytes_ += bytes;
    lock.unlock();
  }

  void erase(const Key& key) EC_EXCLUDES(mutex_) {
    std::shared_ptr<const void> erased;  // destroyed after the lock is gone
    MutexLock lock(mutex_);
    const std::uint32_t there = find_slot(key, hash_of(key));
    if (there != SlotIndex::kNone) erased = release(there);
    lock.unlock();
  }

  void erase_file(std::uint64_t file_number) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].object && slots_[i].key.file_number == file_number) release(i);
  }

  void set_capacity(std::uint64_t capacity_bytes) EC_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<const void>> evicted;  // destroyed after the lock is gone
    MutexLock lock(mutex_);
    capacity_bytes_ = capacity_bytes;
    while (used_bytes_ > capacity_bytes_) evicted.push_back(evict_one());
    lock.unlock();
  }

  std::uint64_t used_bytes() const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return used_bytes_;
  }

 private:
  struct Slot {
    Key key;
    std::shared_ptr<const void> object;  // null: free
    std::uint64_t bytes = 0;
    std::uint8_t passes_when_asked = kItemPasses;
    std::uint8_t passes = 0;  // of the hand, that it still stays
  };

  std::shared_ptr<const void> find_locked(const Key& key, std::uint64_t hash) EC_REQUIRES(mutex_) {
    const std::uint32_t found = find_slot(key, hash);
    if (found == SlotIndex::kNone) return nullptr;
    Slot& slot = slots_[found];
    slot.passes = slot.passes_when_asked;
    return slot.object;
  }

  // Whether what is not there is worth keeping.
  bool note_miss(std::uint64_t hash, std::uint64_t bytes) EC_REQUIRES(mutex_) {
    if (used_bytes_ + bytes + kEntryOverheadBytes <= capacity_bytes_) return true;
    const auto tag = static_cast<std::uint16_t>(hash);
    std::size_t place = (hash >> 32) / kShardCountMax % misses_.size();
    if (misses_[place] == tag) return true;
    for (std::uint64_t left = std::min(1 + bytes / kBytesPerMiss, kPlacesPerMissMax); left > 0;
         --left) {
      misses_[place] = tag;
      if (++place == misses_.size()) place = 0;
    }
    return false;
  }

  std::uint32_t find_slot(const Key& key, std::uint64_t hash) const EC_REQUIRES(mutex_) {
    // The analysis of locks does not look into a closure.
    const Slot* const slots = slots_.data();
    return index_.find(hash, [&](std::uint32_t slot) { return slots[slot].key == key; });
  }

  // Something is in the shard.
  std::shared_ptr<const void> evict_one() EC_REQUIRES(mutex_) {
    for (;; hand_ = (hand_ + 1) % slots_.size()) {
      Slot& slot = slots_[hand_];
      if (!slot.object) continue;
      if (slot.passes == 0) break;
      --slot.passes;
    }
    // On from here: else what comes into this slot would be the next to go.
    const std::size_t index = hand_;
    hand_ = (hand_ + 1) % slots_.size();
    return release(index);
  }

  std::shared_ptr<const void> release(std::size_t index) EC_REQUIRES(mutex_) {
    Slot& slot = slots_[index];
    used_bytes_ -= slot.bytes;
    index_.erase(hash_of(slot.key), static_cast<std::uint32_t>(index));
    free_.push_back(index);
    return std::move(slot.object);
  }

  mutable Mutex mutex_;
  std::uint64_t capacity_bytes_ EC_GUARDED_BY(mutex_);
  SlotIndex index_ EC_GUARDED_BY(mutex_);
  std::vector<Slot> slots_ EC_GUARDED_BY(mutex_);
  std::vector<std::size_t> free_ EC_GUARDED_BY(mutex_);
  std::vector<std::uint16_t> misses_ EC_GUARDED_BY(mutex_);  // ends of hashes, of the latest
  std::size_t hand_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t used_bytes_ EC_GUARDED_BY(mutex_) = 0;
};

BlockCache::BlockCache(std::uint64_t capacity_bytes) {
  const std::uint64_t count =
      std::clamp<std::uint64_t>(capacity_bytes / kShardBytesMin, 1, kShardCountMax);
  for (std::uint64_t i = 0; i < count; ++i)
    shards_.push_back(std::make_unique<Shard>(capacity_bytes / count));
}

BlockCache::~BlockCache() = default;

BlockCache::Shard& BlockCache::shard_of(std::uint64_t file_number, std::uint64_t offset) {
  // The low bits choose the bucket within a shard.
  return *shards_[(hash_of({file_number, offset}) >> 32) % shards_.size()];
}

std::shared_ptr<const void> BlockCache::find_object(std::uint64_t file_number,
                                                    std::uint64_t offset) {
  return shard_of(file_number, offset).find({file_number, offset});
}

std::shared_ptr<const void> BlockCache::find_or_note_object(std::uint64_t file_number,
                                                            std::uint64_t offset,
                                                            std::uint64_t bytes, bool& admits) {
  return shard_of(file_number, offset).find_or_note({file_number, offset}, bytes, admits);
}

void BlockCache::insert(std::uint64_t file_number, std::uint64_t offset,
                        std::shared_ptr<const void> object, std::uint64_t bytes,
                        CacheClass cache_class) {
  shard_of(file_number, offset)
      .insert({file_number, offset}, std::move(object), bytes, cache_class, false);
}

void BlockCache::replace(std::uint64_t file_number, std::uint64_t offset,
                         std::shared_ptr<const void> object, std::uint64_t bytes,
                         CacheClass cache_class) {
  shard_of(file_number, offset)
      .insert({file_number, offset}, std::move(object), bytes, cache_class, true);
}

bool BlockCache::admits(std::uint64_t file_number, std::uint64_t offset, std::uint64_t bytes) {
  return shard_of(file_number, offset).admits(hash_of({file_number, offset}), bytes);
}

void BlockCache::erase(std::uint64_t file_number, std::uint64_t offset) {
  shard_of(file_number, offset).erase({file_number, offset});
}

void BlockCache::erase_file(std::uint64_t file_number) {
  for (const auto& shard : shards_) shard->erase_file(file_number);
}

void BlockCache::set_capacity(std::uint64_t capacity_bytes) {
  for (const auto& shard : shards_) shard->set_capacity(capacity_bytes / shards_.size());
}

std::uint64_t BlockCache::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->used_bytes();
  return bytes;
}

bool TableCache::find_sums(const WholeGroup& group, std::uint64_t every, std::uint64_t phase,
                           WindowSums& sums, SumsAdmission& admission) {
  return files_->sums().find(group, every, phase, sums, admission);
}

void TableCache::keep_sums(const WholeGroup& group, const WindowSums& sums) {
  files_->sums().keep(group, sums);
}

}  // namespace edgecase::engine
