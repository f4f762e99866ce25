// The slots of the write-ahead log: made ahead, taken, given back, deleted.
#include <algorithm>
#include <utility>

#include "core/wal.h"
#include "file/file_names.h"

namespace edgecase::engine {

bool Wal::take_free_slot(std::uint64_t capacity_bytes, WalSlot& slot) {
  MutexLock lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->capacity_bytes < capacity_bytes) continue;
    slot = *it;
    free_.erase(it);
    return true;
  }
  return false;
}

Result<WalSlot> Wal::take_slot(std::uint64_t capacity_bytes) {
  WalSlot slot;
  if (take_free_slot(capacity_bytes, slot)) return slot;
  // Waits for one that is being made.
  MutexLock creating(create_mutex_);
  if (take_free_slot(capacity_bytes, slot)) return slot;
  // Two large slots and an ordinary one must have room, or nothing could ever follow a large one.
  const std::uint64_t large_max = (settings_.limit_bytes - settings_.segment_bytes) / 2;
  if (capacity_bytes > std::max(settings_.segment_bytes, large_max))
    return invalid_argument("the batch needs " + std::to_string(capacity_bytes) +
                            " bytes of write-ahead log; wal_limit_bytes is " +
                            std::to_string(settings_.limit_bytes));
  if (!reserve_space(capacity_bytes))
    return busy("the write-ahead log is at its limit of " + std::to_string(settings_.limit_bytes) +
                " bytes until a flush succeeds");
  return create_slot(capacity_bytes);
}

bool Wal::reserve_space(std::uint64_t capacity_bytes) {
  std::vector<WalSlot> in_the_way;
  {
    MutexLock lock(mutex_);
    std::uint64_t free_bytes = 0;
    for (const WalSlot& slot : free_) free_bytes += slot.capacity_bytes;
    if (total_bytes_ - free_bytes + capacity_bytes > settings_.limit_bytes) return false;
    while (total_bytes_ + capacity_bytes > settings_.limit_bytes) {
      total_bytes_ -= free_.back().capacity_bytes;
      in_the_way.push_back(free_.back());
      free_.pop_back();
    }
    total_bytes_ += capacity_bytes;
    // delete_slot() takes these off.
    for (const WalSlot& slot : in_the_way) total_bytes_ += slot.capacity_bytes;
  }
  for (const WalSlot& slot : in_the_way) delete_slot(slot);
  return true;
}

std::uint64_t Wal::take_index() {
  const auto unused = std::find(used_indexes_.begin(), used_indexes_.end(), false);
  const auto index = static_cast<std::uint64_t>(unused - used_indexes_.begin());
  if (unused == used_indexes_.end()) used_indexes_.push_back(false);
  used_indexes_[index] = true;
  return index;
}

// The name of a slot that an earlier process did not use may be in the page cache only, and if a
// sync failed there, no later one makes it durable. A new name is a new change.
Status Wal::name_again(std::vector<WalSlot>& free) {
  for (WalSlot& slot : free) {
    WalSlot named = slot;
    {
      MutexLock lock(mutex_);
      named.index = take_index();
    }
    const Status renamed = file_system_.rename_file(slot_path(slot.index), slot_path(named.index));
    MutexLock lock(mutex_);
    used_indexes_[renamed.ok() ? slot.index : named.index] = false;
    if (!renamed.ok()) return renamed;
    slot = named;
  }
  return file_system_.sync_directory(wal_directory(settings_.metadata_directory));
}

Result<WalSlot> Wal::create_slot(std::uint64_t capacity_bytes) {
  WalSlot slot{0, capacity_bytes};
  {
    MutexLock lock(mutex_);
    slot.index = take_index();
  }
  const std::string path = slot_path(slot.index);
  Status created = file_system_.remove_file(path);  // left by an earlier failure
  if (created.code() == StatusCode::NotFound) created = ok();
  if (created.ok()) created = file_system_.create_log_file(path, capacity_bytes).status();
  if (created.ok())
    created = file_system_.sync_directory(wal_directory(settings_.metadata_directory));
  if (created.ok()) return slot;
  delete_slot(slot);
  return created;
}

void Wal::delete_slot(const WalSlot& slot) {
  // What cannot be removed is removed when the index is used again, or recognised at recovery by
  // its number.
  static_cast<void>(file_system_.remove_file(slot_path(slot.index)).ok());
  MutexLock lock(mutex_);
  used_indexes_[slot.index] = false;
  total_bytes_ -= slot.capacity_bytes;
}

bool Wal::needs_slot() const {
  MutexLock lock(mutex_);
  return free_.empty() && total_bytes_ + settings_.segment_bytes <= settings_.limit_bytes;
}

Status Wal::prepare_slot() {
  MutexLock creating(create_mutex_);
  if (!needs_slot() || !reserve_space(settings_.segment_bytes)) return ok();
  EC_ASSIGN_OR_RETURN(const WalSlot slot, create_slot(settings_.segment_bytes));
  give_back(slot);
  return ok();
}

}  // namespace edgecase::engine
