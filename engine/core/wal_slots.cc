// The slots of the write-ahead log: made ahead, taken, given back, deleted.
#include <algorithm>
#include <utility>

#include "core/wal.h"
#include "file/file_names.h"
#include "file/overwriting.h"

namespace edgecase::engine {
namespace {

constexpr SequenceNumber kNoRecords = UINT64_MAX;
constexpr std::int64_t kNeverExpires = std::numeric_limits<std::int64_t>::max();

}  // namespace

// What is used keeps old bytes behind its end: those that hold least of what is old first.
bool Wal::take_free_slot(std::uint64_t capacity_bytes, WalSlot& slot) {
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

bool Wal::current_holds(SequenceNumber through) const {
  MutexLock lock(mutex_);
  return current_.number != 0 ? current_.slot.oldest <= through
                              : !closed_.empty() && closed_.back().slot.oldest <= through;
}

bool Wal::holds(SequenceNumber through) const {
  const auto has_old = [&](const WalSlot& slot) { return slot.oldest <= through; };
  MutexLock lock(mutex_);
  return (current_.number != 0 && has_old(current_.slot)) || !resisting_.empty() ||
         std::any_of(free_.begin(), free_.end(), has_old) ||
         std::any_of(closed_.begin(), closed_.end(),
                     [&](const WalSegment& segment) { return has_old(segment.slot); });
}

void Wal::note_expiry(std::int64_t expires_ns) {
  if (expires_ns < current_expires_ns_.load()) current_expires_ns_.store(expires_ns);
}

void Wal::forget_expiries() {
  MutexLock lock(mutex_);
  for (WalSlot& slot : free_)
    if (slot.dirty_bytes > 0) slot.expires_ns = WalSlot::kNotKnown;
  for (WalSlot& slot : resisting_) slot.expires_ns = WalSlot::kNotKnown;
  for (WalSegment& segment : closed_) segment.slot.expires_ns = WalSlot::kNotKnown;
  if (current_.number != 0) current_expires_ns_.store(WalSlot::kNotKnown);
}

bool Wal::needs_expired(std::int64_t now_ns) const {
  MutexLock lock(mutex_);
  return (current_.number != 0 && current_expires_ns_.load() < now_ns) ||
         std::any_of(closed_.begin(), closed_.end(),
                     [&](const WalSegment& segment) { return segment.slot.expires_ns < now_ns; });
}

bool Wal::holds_expired(std::int64_t now_ns) const {
  if (needs_expired(now_ns)) return true;
  MutexLock lock(mutex_);
  const auto has_expired = [&](const WalSlot& slot) { return slot.expires_ns < now_ns; };
  return std::any_of(free_.begin(), free_.end(), has_expired) ||
         std::any_of(resisting_.begin(), resisting_.end(), has_expired);
}

Status Wal::overwrite_expired(std::int64_t now_ns) {
  MutexLock creating(create_mutex_);
  const Status overwritten = overwrite_slots(
      take_slots_to_overwrite([&](const WalSlot& slot) { return slot.expires_ns < now_ns; }));
  const Status deleted = delete_resisting();
  return overwritten.ok() ? deleted : overwritten;
}

Status Wal::delete_resisting() {
  std::vector<WalSlot> resisting;
  {
    MutexLock lock(mutex_);
    resisting.swap(resisting_);
    for (const WalSlot& slot : resisting) total_bytes_ += slot.capacity_bytes;
  }
  Status first;
  for (const WalSlot& slot : resisting) {
    if (const Status deleted = delete_slot(slot); first.ok()) first = deleted;
  }
  return first;
}

std::vector<WalSlot> Wal::take_slots_to_overwrite(
    const std::function<bool(const WalSlot&)>& holds) {
  MutexLock lock(mutex_);
  const auto old =
      std::partition(free_.begin(), free_.end(), [&](const WalSlot& slot) { return !holds(slot); });
  std::vector<WalSlot> taken(old, free_.end());
  free_.erase(old, free_.end());
  return taken;
}

// Whoever needs a slot meanwhile waits as for one that is being made.
Status Wal::overwrite_slots(std::vector<WalSlot> slots) {
  std::vector<Overwriting> dirty;
  for (const WalSlot& slot : slots)
    dirty.push_back({slot_path(slot.index), 0, std::min(slot.dirty_bytes, slot.capacity_bytes)});
  file_system_.overwrite(dirty);
  Status first;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    WalSlot& slot = slots[i];
    const Status& overwritten = dirty[i].status;
    if (overwritten.ok()) {
      overwritten_bytes_.fetch_add(dirty[i].bytes);
      slot.oldest = kNoRecords;
      slot.expires_ns = kNeverExpires;
      slot.dirty_bytes = 0;
    } else if (first.ok()) {
      first = overwritten;
    }
    give_back(slot);
  }
  return first;
}

Status Wal::overwrite_free(SequenceNumber through) {
  MutexLock creating(create_mutex_);
  const Status overwritten = overwrite_slots(
      take_slots_to_overwrite([&](const WalSlot& slot) { return slot.oldest <= through; }));
  const Status deleted = delete_resisting();
  return overwritten.ok() ? deleted : overwritten;
}

Result<WalSlot> Wal::take_slot(std::uint64_t capacity_bytes) {
  WalSlot slot;
  if (take_free_slot(capacity_bytes, slot)) return slot;
  // Waits for one that is being made.
  MutexLock creating(create_mutex_);
  if (take_free_slot(capacity_bytes, slot)) return slot;
  // Two large slots and an ordinary one must have room, or nothing could ever follow a large one.
  if (capacity_bytes > std::max(settings_.segment_bytes, large_slot_max_bytes()))
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
  for (const WalSlot& slot : in_the_way) static_cast<void>(delete_slot(slot).ok());
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
  WalSlot slot{0, capacity_bytes, kNoRecords, kNeverExpires, 0};
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
  static_cast<void>(delete_slot(slot).ok());
  return created;
}

// What held records is overwritten first. If that fails it keeps its name until it can be done, or
// is recognised at recovery by its number.
Status Wal::delete_slot(const WalSlot& slot) {
  const std::string path = slot_path(slot.index);
  Status deleted;
  if (slot.oldest != kNoRecords) deleted = overwrite_file(file_system_, path).status();
  if (deleted.ok()) deleted = file_system_.remove_file(path);
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
