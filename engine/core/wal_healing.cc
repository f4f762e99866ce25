// A log that failed: what is told of it, and how it comes to take records again.
#include <algorithm>

#include "core/engine_impl.h"

namespace edgecase::engine {
namespace {

// Writers do not try it earlier: the longest is what they wait for once there is room again.
constexpr std::int64_t kHealDelayMinNs = 500'000'000;
constexpr std::int64_t kHealDelayMaxNs = 1'000'000'000;

}  // namespace

void EngineImpl::note_wal_failure(const Status& cause) {
  const Status failure = cause.on(Drive::Metadata);
  const std::int64_t now_ns = environment_.clock.boot_ns();
  heal_delay_ns_ = std::clamp(2 * heal_delay_ns_, kHealDelayMinNs, kHealDelayMaxNs);
  heal_not_before_ns_ = now_ns + heal_delay_ns_;
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = wal_failure_.ok();
    if (first) wal_failed_since_ns_ = environment_.clock.wall_ns();
    wal_failure_ = failure;
    wal_failing_.store(true, std::memory_order_release);
  }
  if (first) environment_.listener.on_degraded("metadata", failure);
  schedule_heal(heal_delay_ns_);
}

Status EngineImpl::heal_wal(std::uint64_t payload_bytes) {
  Status failure;
  {
    MutexLock lock(mutex_);
    failure = wal_failure_;
  }
  if (failure.ok() || environment_.clock.boot_ns() < heal_not_before_ns_) return failure;
  if (Status started = start_segment(payload_bytes); !started.ok()) {
    // If that fails, the next attempt tries it again.
    if (started.code() == StatusCode::Busy) static_cast<void>(make_slot_free().ok());
    note_wal_failure(started);
    return started;
  }
  heal_delay_ns_ = 0;
  {
    MutexLock lock(mutex_);
    wal_failure_ = ok();
    wal_failing_.store(false, std::memory_order_release);
    if (flush_failure_.ok()) refused_ = ok();
    refuses_.store(!refused_.ok(), std::memory_order_relaxed);
  }
  environment_.listener.on_resumed("metadata");
  return ok();
}

// A log at its limit whose last segment is given up takes another only when a flush has freed one.
// Does not wait for it.
Status EngineImpl::make_slot_free() {
  {
    MutexLock lock(mutex_);
    if (!view_->immutables.empty()) return ok();
  }
  if (active_->entry_count() > 0) return rotate_memtable();
  return release_flushed_wal().status();
}

void EngineImpl::schedule_heal(std::int64_t delay_ns) {
  environment_.executor.schedule_after(Lane::Compaction, delay_ns, [this, gate = gate_] {
    if (!gate->enter()) return;
    try_heal();
    gate->leave();
  });
}

void EngineImpl::try_heal() {
  // Leads for a moment, but does not wait for it: whoever leads heals too, and may itself be
  // waiting for this lane.
  {
    MutexLock lock(mutex_);
    if (wal_failure_.ok()) return;
  }
  if (!commits_.try_lead()) return schedule_heal(kHealDelayMinNs);
  heal_not_before_ns_ = 0;
  static_cast<void>(heal_wal(0).ok());  // a failure is noted and scheduled again
  commits_.leave();
}

}  // namespace edgecase::engine
