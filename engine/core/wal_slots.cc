#include "core/wal.h"

#include <algorithm>
#include <utility>

#include "file/file_names.h"
#include "file/file_remover.h"

namespace edgecase::engine {
namespace {

constexpr SequenceNumber kNoRecords = UINT64_MAX;
constexpr std::int64_t kNeverExpires = std::numeric_limits<std::int64_t>::max();

}  // namespace

WalSlots::WalSlots(FileSystem& file_system, std::string metadata_directory,
                   std::uint64_t segment_bytes, std::uint64_t limit_bytes)
    : file_system_(file_system),
      metadata_directory_(std::move(metadata_directory)),
      segment_bytes_(segment_bytes),
      limit_bytes_(limit_bytes) {}

std::string WalSlots::path(std::uint64_t index) const {
  return wal_slot_path(metadata_directory_, index);
}

void WalSlots::count(const WalSlot& slot) {
  if (slot.index >= used_indexes_.size()) used_indexes_.resize(slot.index + 1);
  used_indexes_[slot.index] = true;
  total_bytes_ += slot.capacity_bytes;
}

Status WalSlots::adopt(const std::vector<WalSlot>& used, std::vector<WalSlot> free) {
  {
    MutexLock lock(mutex_);
    for (const WalSlot& slot : used) count(slot);
    for (const WalSlot& slot : free) count(slot);
  }
  EC_TRY(name_again(free));
  std::vector<WalSlot> outdated;
  {
    MutexLock lock(mutex_);
    std::uint64_t kept_bytes = total_bytes_;
    for (const WalSlot& slot : free) kept_bytes -= slot.capacity_bytes;
    for (const WalSlot& slot : free) {
      const bool useful =
          slot.capacity_bytes == segment_bytes_ && kept_bytes + slot.capacity_bytes <= limit_bytes_;
      if (useful) kept_bytes += slot.capacity_bytes;
      (useful ? free_ : outdated).push_back(slot);
    }
  }
  for (const WalSlot& slot : outdated) static_cast<void>(remove(slot).ok());
  return ok();
}

// The name of a slot that an earlier process did not use may be in the page cache only, and if a
// sync failed there, no later one makes it durable. A new name is a new change.
Status WalSlots::name_again(std::vector<WalSlot>& free) {
  for (WalSlot& slot : free) {
    WalSlot named = slot;
    {
      MutexLock lock(mutex_);
      named.index = take_index();
    }
    const Status renamed = file_system_.rename_file(path(slot.index), path(named.index));
    MutexLock lock(mutex_);
    used_indexes_[renamed.ok() ? slot.index : named.index] = false;
    if (!renamed.ok()) return renamed;
    slot = named;
  }
  return file_system_.sync_directory(wal_directory(metadata_directory_));
}

// What is used keeps old bytes behind its end: those that hold least of what is old first.
bool WalSlots::take_free(std::uint64_t capacity_bytes, WalSlot& slot) {
  MutexLock lock(mutex_);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->capacity_bytes < capacity_bytes) continue;
    if (best == free_.end() || it->oldest > best->oldest) best = it;
  }
  if (best == free_.end()) return false;
  slot = *best;
  free_.erase(best);
  return true;
}

Result<WalSlot> WalSlots::take(std::uint64_t capacity_bytes) {
  WalSlot slot;
  if (take_free(capacity_bytes, slot)) return slot;
  // Waits for one that is being made.
  MutexLock creating(create_mutex_);
  if (take_free(capacity_bytes, slot)) return slot;
  if (capacity_bytes > std::max(segment_bytes_, large_max_bytes()))
    return invalid_argument("the batch needs " + std::to_string(capacity_bytes) +
                            " bytes of write-ahead log; wal_limit_bytes is " +
                            std::to_string(limit_bytes_));
  if (!reserve_space(capacity_bytes))
    return busy("the write-ahead log is at its limit of " + std::to_string(limit_bytes_) +
                " bytes until a flush succeeds");
  return create(capacity_bytes);
}

bool WalSlots::reserve_space(std::uint64_t capacity_bytes) {
  std::vector<WalSlot> in_the_way;
  {
    MutexLock lock(mutex_);
    std::uint64_t free_bytes = 0;
    for (const WalSlot& slot : free_) free_bytes += slot.capacity_bytes;
    if (total_bytes_ - free_bytes + capacity_bytes > limit_bytes_) return false;
    while (total_bytes_ + capacity_bytes > limit_bytes_) {
      total_bytes_ -= free_.back().capacity_bytes;
      in_the_way.push_back(free_.back());
      free_.pop_back();
    }
    total_bytes_ += capacity_bytes;
    // remove() takes these off.
    for (const WalSlot& slot : in_the_way) total_bytes_ += slot.capacity_bytes;
  }
  for (const WalSlot& slot : in_the_way) static_cast<void>(remove(slot).ok());
  return true;
}

std::uint64_t WalSlots::take_index() {
  const auto unused = std::find(used_indexes_.begin(), used_indexes_.end(), false);
  const auto index = static_cast<std::uint64_t>(unused - used_indexes_.begin());
  if (unused == used_indexes_.end()) used_indexes_.push_back(false);
  used_indexes_[index] = true;
  return index;
}

Result<WalSlot> WalSlots::create(std::uint64_t capacity_bytes) {
  WalSlot slot{0, capacity_bytes, kNoRecords, kNeverExpires, 0};
  {
    MutexLock lock(mutex_);
    slot.index = take_index();
  }
  const std::string name = path(slot.index);
  Status created = file_system_.remove_file(name);  // left by an earlier failure
  if (created.code() == StatusCode::NotFound) created = ok();
  if (created.ok()) created = file_system_.create_log_file(name, capacity_bytes).status();
  if (created.ok()) created = file_system_.sync_directory(wal_directory(metadata_directory_));
  if (created.ok()) return slot;
  static_cast<void>(remove(slot).ok());
  return created;
}

Status WalSlots::remove(const WalSlot& slot) {
  const std::string name = path(slot.index);
  Status deleted;
  if (slot.oldest != kNoRecords) deleted = overwrite_file(file_system_, name).status();
  if (deleted.ok()) deleted = file_system_.remove_file(name);
  const bool resists =
      slot.oldest != kNoRecords && !deleted.ok() && deleted.code() != StatusCode::NotFound;
  MutexLock lock(mutex_);
  total_bytes_ -= slot.capacity_bytes;
  if (resists) {
    resisting_.push_back(slot);
    return deleted;
  }
  used_indexes_[slot.index] = false;
  return ok();
}

void WalSlots::give_back(const WalSlot& slot) {
  MutexLock lock(mutex_);
  free_.push_back(slot);
}

bool WalSlots::needs_one() const {
  MutexLock lock(mutex_);
  return free_.empty() && total_bytes_ + segment_bytes_ <= limit_bytes_;
}

Status WalSlots::prepare_one() {
  MutexLock creating(create_mutex_);
  if (!needs_one() || !reserve_space(segment_bytes_)) return ok();
  EC_ASSIGN_OR_RETURN(const WalSlot slot, create(segment_bytes_));
  give_back(slot);
  return ok();
}

bool WalSlots::any_free(const Choice& is_such) const {
  MutexLock lock(mutex_);
  return std::any_of(free_.begin(), free_.end(), is_such);
}

bool WalSlots::any_resists(const Choice& is_such) const {
  MutexLock lock(mutex_);
  return std::any_of(resisting_.begin(), resisting_.end(), is_such);
}

void WalSlots::forget_expiries() {
  MutexLock lock(mutex_);
  for (WalSlot& slot : free_)
    if (slot.dirty_bytes > 0) slot.expires_ns = WalSlot::kNotKnown;
  for (WalSlot& slot : resisting_) slot.expires_ns = WalSlot::kNotKnown;
}

// Whoever needs a slot meanwhile waits as for one that is being made.
Status WalSlots::overwrite(const Choice& is_such) {
  MutexLock creating(create_mutex_);
  std::vector<WalSlot> slots, resisting;
  {
    MutexLock lock(mutex_);
    const auto such = std::partition(free_.begin(), free_.end(),
                                     [&](const WalSlot& slot) { return !is_such(slot); });
    slots.assign(such, free_.end());
    free_.erase(such, free_.end());
  }
  std::vector<Overwriting> dirty;
  for (const WalSlot& slot : slots)
    dirty.push_back({path(slot.index), 0, std::min(slot.dirty_bytes, slot.capacity_bytes)});
  file_system_.overwrite(dirty);
  Status first;
  const auto note = [&first](const Status& done) {
    if (first.ok()) first = done;
  };
  for (std::size_t i = 0; i < slots.size(); ++i) {
    WalSlot& slot = slots[i];
    note(dirty[i].status);
    if (dirty[i].status.ok()) {
      overwritten_bytes_.fetch_add(dirty[i].bytes);
      slot.oldest = kNoRecords;
      slot.expires_ns = kNeverExpires;
      slot.dirty_bytes = 0;
    }
    give_back(slot);
  }
  {
    MutexLock lock(mutex_);
    resisting.swap(resisting_);
    for (const WalSlot& slot : resisting) total_bytes_ += slot.capacity_bytes;
  }
  for (const WalSlot& slot : resisting) note(remove(slot));
  return first;
}

}  // namespace edgecase::engine
