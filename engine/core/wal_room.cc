// How the log gets room for what is to be written: a segment of its own, or one that is free after
// a flush.
#include "core/engine_impl.h"

namespace edgecase::engine {

Status EngineImpl::make_wal_room(std::uint64_t payload_bytes) {
  EC_TRY(heal_wal(payload_bytes));
  for (;;) {
    if (wal_->fits(payload_bytes)) return ok();
    std::uint64_t flushes_before = 0;
    {
      MutexLock lock(mutex_);
      flushes_before = flushes_;
    }
    const Status started = start_segment(payload_bytes);
    if (started.ok()) continue;
    if (started.code() == StatusCode::InvalidArgument) return started;
    if (started.code() != StatusCode::Busy) {
      note_wal_failure(started);
      return started;
    }
    // At the limit: what is in memory must reach the tables before a slot comes free.
    if (active_->entry_count() > 0) EC_TRY(rotate_memtable());
    MutexLock lock(mutex_);
    if (flushes_ != flushes_before || !view_->immutables.empty()) {
      EC_TRY(wait_for_flush(flushes_before));
      continue;
    }
    lock.unlock();
    EC_ASSIGN_OR_RETURN(const bool released, release_flushed_wal());
    if (!released) return started;
  }
}

// After a crash there may be segments that hold nothing newer than the last flush, and no flush to
// come. No flush runs: the log's beginning in the manifest is this thread's to move.
Result<bool> EngineImpl::release_flushed_wal() {
  const VersionState state = versions_->state();
  const std::uint64_t oldest = wal_->oldest_needed(state.flushed_sequence);
  if (oldest <= state.oldest_wal_segment) return false;
  EC_TRY(wal_->sync_recovered());
  VersionEdit edit;
  edit.oldest_wal_segment = oldest;
  EC_TRY(versions_->apply(edit));
  wal_->release_before(oldest);
  return true;
}

Status EngineImpl::start_segment(std::uint64_t payload_bytes) {
  SequenceNumber flushed = 0;
  {
    MutexLock lock(mutex_);
    flushed = flushed_sequence_;
  }
  EC_TRY(wal_->start_segment(payload_bytes, last_sequence_, flushed));
  schedule_slot();
  // The first segment ever: from now on one that is missing is noticed.
  if (versions_->state().oldest_wal_segment == 0) {
    VersionEdit edit;
    edit.oldest_wal_segment = wal_->oldest_needed(0);
    EC_TRY(versions_->apply(edit));
  }
  return ok();
}

void EngineImpl::schedule_slot() {
  if (!wal_->needs_slot()) return;
  {
    MutexLock lock(mutex_);
    if (slot_scheduled_) return;
    slot_scheduled_ = true;
  }
  environment_.executor.schedule(Lane::Compaction, [this, gate = gate_] {
    if (!gate->enter()) return;
    // A failure shows when the slot is needed and is made in place.
    static_cast<void>(wal_->prepare_slot().ok());
    {
      MutexLock lock(mutex_);
      slot_scheduled_ = false;
    }
    gate->leave();
  });
}

}  // namespace edgecase::engine
