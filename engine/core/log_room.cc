#include "core/log_room.h"

#include <algorithm>

namespace edgecase::engine {
namespace {

// Writers do not try a log that failed earlier: the longest is what they wait for once there is
// room again.
constexpr std::int64_t kHealDelayMinNs = 500'000'000;
constexpr std::int64_t kHealDelayMaxNs = 1'000'000'000;

// Until the log counts as resting.
constexpr std::int64_t kRestNs = 1'000'000'000;

}  // namespace

Status LogRoom::make_room(std::uint64_t payload_bytes) {
  EC_TRY(heal(payload_bytes));
  for (;;) {
    if (store_.wal.fits(payload_bytes)) return ok();
    const std::uint64_t flushes_before = flushes_.flushes();
    const Status started = start_segment(payload_bytes);
    if (started.ok()) continue;
    if (started.code() == StatusCode::InvalidArgument) return started;
    if (started.code() != StatusCode::Busy) {
      note_failure(started);
      return started;
    }
    // At the limit: what is in memory must reach the tables before a slot comes free.
    EC_TRY(memtable_.rotate());
    if (flushes_.flushes() != flushes_before || store_.views.immutable_count() > 0) {
      EC_TRY(flushes_.wait_for(flushes_before));
      continue;
    }
    EC_ASSIGN_OR_RETURN(const bool released, release_flushed());
    // A flush may have released some meanwhile.
    if (!released) return start_segment(payload_bytes);
  }
}

// After a crash there may be segments that hold nothing newer than the last flush, and no flush to
// come.
Result<bool> LogRoom::release_flushed() {
  const VersionState state = store_.versions.state();
  const std::uint64_t oldest = store_.wal.oldest_needed(state.flushed_sequence);
  if (oldest <= state.oldest_wal_segment) return false;
  EC_TRY(store_.wal.sync_recovered());
  VersionEdit edit;
  edit.oldest_wal_segment = oldest;
  EC_TRY(store_.versions.apply(edit));
  store_.wal.release_before(oldest);
  return true;
}

Status LogRoom::start_segment(std::uint64_t payload_bytes) {
  EC_TRY(store_.wal.start_segment(payload_bytes, memtable_.last_sequence(),
                                  store_.versions.flushed_sequence()));
  prepare_slot();
  // The first segment ever: from now on one that is missing is noticed.
  if (store_.versions.state().oldest_wal_segment == 0) {
    VersionEdit edit;
    edit.oldest_wal_segment = store_.wal.oldest_needed(0);
    EC_TRY(store_.versions.apply(edit));
  }
  return ok();
}

void LogRoom::prepare_slot() {
  if (!store_.wal.needs_slot() || slot_scheduled_.exchange(true)) return;
  store_.tasks.schedule(Lane::Compaction, [this] {
    // A failure shows when the slot is needed and is made in place.
    static_cast<void>(store_.wal.prepare_slot().ok());
    slot_scheduled_ = false;
  });
}

Status LogRoom::turn(SequenceNumber through) {
  if (store_.wal.current_holds(through)) {
    EC_TRY(memtable_.rotate());
    const Status started = start_segment(0);
    if (!started.ok() && started.code() != StatusCode::Busy) return started;
  }
  // A flush that runs releases them itself.
  if (store_.views.immutable_count() > 0) return ok();
  EC_ASSIGN_OR_RETURN(const bool released, release_flushed());
  // What earlier segments hold and no table does is in the active memtable.
  return released || !store_.wal.has_closed() ? ok() : memtable_.rotate();
}

Status LogRoom::sync(std::int64_t& synced_ns) {
  Clock& clock = store_.environment.clock;
  const std::int64_t begin_ns = clock.boot_ns();
  const Status synced = store_.wal.sync();
  const std::int64_t end_ns = clock.boot_ns();
  synced_ns += end_ns - begin_ns;
  if (synced.ok()) {
    last_sync_ns_.store(end_ns, std::memory_order_relaxed);
    if (!rest_scheduled_.exchange(true)) schedule_rest(kRestNs);
  }
  return synced;
}

// Once nobody has written for a second; while somebody does, that is a look a second.
void LogRoom::schedule_rest(std::int64_t delay_ns) {
  store_.tasks.schedule_after(Lane::Compaction, delay_ns, [this] {
    const std::int64_t since_ns =
        store_.environment.clock.boot_ns() - last_sync_ns_.load(std::memory_order_relaxed);
    if (since_ns >= kRestNs && commits_.try_lead()) {
      rest_scheduled_ = false;
      store_.wal.rest();
      commits_.leave();
    } else {
      schedule_rest(std::clamp<std::int64_t>(kRestNs - since_ns, kRestNs / 8, kRestNs));
    }
  });
}

void LogRoom::note_failure(const Status& cause) {
  heal_delay_ns_ = std::clamp(2 * heal_delay_ns_, kHealDelayMinNs, kHealDelayMaxNs);
  heal_not_before_ns_ = store_.environment.clock.boot_ns() + heal_delay_ns_;
  store_.health.fail(Work::Log, cause);
  schedule_heal(heal_delay_ns_);
}

Status LogRoom::heal(std::uint64_t payload_bytes) {
  const Status failure = store_.health.failure(Work::Log);
  if (failure.ok() || store_.environment.clock.boot_ns() < heal_not_before_ns_) return failure;
  if (Status started = start_segment(payload_bytes); !started.ok()) {
    // If that fails, the next attempt tries it again.
    if (started.code() == StatusCode::Busy) static_cast<void>(make_slot_free().ok());
    note_failure(started);
    return started;
  }
  heal_delay_ns_ = 0;
  store_.health.succeed(Work::Log);
  return ok();
}

// A log at its limit whose last segment is given up takes another only when a flush has freed one.
// Does not wait for it.
Status LogRoom::make_slot_free() {
  if (store_.views.immutable_count() > 0) return ok();
  if (memtable_.active().entry_count() > 0) return memtable_.rotate();
  return release_flushed().status();
}

void LogRoom::schedule_heal(std::int64_t delay_ns) {
  store_.tasks.schedule_after(Lane::Compaction, delay_ns, [this] { try_heal(); });
}

void LogRoom::try_heal() {
  if (!store_.health.is_failing(Work::Log)) return;
  // Leads for a moment, but does not wait for it: whoever leads heals too, and may itself be
  // waiting for this lane.
  if (!commits_.try_lead()) return schedule_heal(kHealDelayMinNs);
  may_heal();
  static_cast<void>(heal(0).ok());  // a failure is noted and scheduled again
  commits_.leave();
}

}  // namespace edgecase::engine
