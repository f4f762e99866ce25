#include "table/block_cache.h"

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "base/mutex.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kShardBytesMin = 512u << 10;
constexpr std::uint64_t kShardCountMax = 16;
constexpr std::uint64_t kEntryOverheadBytes = 128;  // slot, map node, control block
constexpr std::uint64_t kObjectShareMax = 4;        // no object over a quarter of its shard

struct Key {
  std::uint64_t file_number = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

std::uint64_t hash_of(const Key& key) {
  return mix64(key.file_number * 0x9e3779b97f4a7c15 + key.offset);
}

struct KeyHash {
  std::size_t operator()(const Key& key) const { return hash_of(key); }
};

}  // namespace

class BlockCache::Shard {
 public:
  explicit Shard(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  std::shared_ptr<const void> find(const Key& key) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = slot_of_.find(key);
    if (found == slot_of_.end()) return nullptr;
    Slot& slot = slots_[found->second];
    slot.asked_for = true;
    return slot.object;
  }

  void insert(const Key& key, std::shared_ptr<const void> object, std::uint64_t bytes)
      EC_EXCLUDES(mutex_) {
    bytes += kEntryOverheadBytes;
    if (bytes > capacity_bytes_ / kObjectShareMax) return;
    // Evicted objects are destroyed after the lock is gone.
    std::vector<std::shared_ptr<const void>> evicted;
    MutexLock lock(mutex_);
    if (slot_of_.contains(key)) return;
    while (used_bytes_ + bytes > capacity_bytes_) evicted.push_back(evict_one());
    std::size_t index = slots_.size();
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    slots_[index] = {key, std::move(object), bytes, false};
    slot_of_.emplace(key, index);
    used_bytes_ += bytes;
    lock.unlock();
  }

  void erase_file(std::uint64_t file_number) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].object && slots_[i].key.file_number == file_number) release(i);
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
    bool asked_for = false;
  };

  // Something is in the shard.
  std::shared_ptr<const void> evict_one() EC_REQUIRES(mutex_) {
    for (;; hand_ = (hand_ + 1) % slots_.size()) {
      Slot& slot = slots_[hand_];
      if (!slot.object) continue;
      if (!slot.asked_for) break;
      slot.asked_for = false;
    }
    return release(hand_);
  }

  std::shared_ptr<const void> release(std::size_t index) EC_REQUIRES(mutex_) {
    Slot& slot = slots_[index];
    used_bytes_ -= slot.bytes;
    slot_of_.erase(slot.key);
    free_.push_back(index);
    return std::move(slot.object);
  }

  const std::uint64_t capacity_bytes_;
  mutable Mutex mutex_;
  std::unordered_map<Key, std::size_t, KeyHash> slot_of_ EC_GUARDED_BY(mutex_);
  std::vector<Slot> slots_ EC_GUARDED_BY(mutex_);
  std::vector<std::size_t> free_ EC_GUARDED_BY(mutex_);
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

void BlockCache::insert(std::uint64_t file_number, std::uint64_t offset,
                        std::shared_ptr<const void> object, std::uint64_t bytes) {
  shard_of(file_number, offset).insert({file_number, offset}, std::move(object), bytes);
}

void BlockCache::erase_file(std::uint64_t file_number) {
  for (const auto& shard : shards_) shard->erase_file(file_number);
}

std::uint64_t BlockCache::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->used_bytes();
  return bytes;
}

}  // namespace edgecase::engine
