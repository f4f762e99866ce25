// How writers are slowed down to what flushes and merges keep up with.
#include <algorithm>

#include "core/engine_impl.h"

namespace edgecase::engine {
namespace {

// Writers that outrun merges are slowed down: not at all at the first number of tables in level 0,
// or of garbage bytes a useful byte, to the least rate at the second. In between the pause a byte
// grows with the square of the debt, so that writers settle at the rate that merges keep up with.
constexpr double kLevel0SlowMin = 64;
constexpr double kLevel0SlowMax = 256;
constexpr double kGarbageSlowMin = 0.2;
constexpr double kGarbageSlowMax = 0.4;
constexpr std::uint64_t kGarbageSlowMinBytes = 16u << 20;  // less is not worth a delay
// So much more may there be than when nothing of it was worth cleaning; some is not known, but
// expected.
constexpr double kGarbageSinceLook = 0.05;
constexpr double kBurstMemtables = 2;
// The same of memtables that wait for a flush, and the active one as far as it is full.
constexpr double kMemtablesSlowMin = 2.25;
constexpr double kMemtablesSlowMax = 3;
constexpr double kPauseMaxNsPerByte = 500;  // 2 MB/s
// A pause is no shorter, or it would cost more than it brings, and no longer: what is owed beyond
// it is for later writes.
constexpr std::int64_t kPauseMinNs = 50'000;
constexpr std::int64_t kPauseMaxNs = 2'000'000;

}  // namespace

// How far merges are behind: 0 nothing, 1 as far as may be.
double EngineImpl::compaction_debt() {
  if (!compactor_->failure().ok()) return 0;  // waiting would not help
  const std::shared_ptr<const Version> version = versions_->current();
  const auto between = [](double value, double none, double whole) {
    return std::clamp((value - none) / (whole - none), 0.0, 1.0);
  };
  std::uint64_t bytes = 0;
  for (const auto& [number, live_bytes] : version->live_bytes) bytes += live_bytes;
  // With what is in memory, and what may come there before this is asked again: flushes come in
  // bursts.
  std::uint64_t coming = memtable_bytes();
  {
    MutexLock lock(mutex_);
    for (const auto& memtable : view_->immutables) coming += memtable->memory_bytes();
  }
  const auto dying =
      static_cast<std::uint64_t>(compactor_->dying_share() * static_cast<double>(coming));
  const double garbage =
      bytes < kGarbageSlowMinBytes
          ? 0
          : garbage_share(*version, compactor_->suspected_bytes() + dying, coming);
  const std::uint64_t written = table_value_bytes_.load() + table_metadata_bytes_.load();
  // What waits in memory goes up and down by so much whatever merges do.
  const double burst = kBurstMemtables * static_cast<double>(memtable_bytes()) *
                       compactor_->dying_share() /
                       static_cast<double>(std::max<std::uint64_t>(1, bytes));
  const double natural = kGarbageSlowMin + compactor_->garbage_grace() + burst;
  // Of what is not worth cleaning yet there is no less when writers have waited.
  const double left = compactor_->idle_garbage();
  const double idle = left > 0 ? left + kGarbageSinceLook + burst : 0;
  double limit = 0;
  {
    MutexLock lock(mutex_);
    limit = garbage_limit_.next(natural, garbage, idle, written, bytes);
  }
  return std::max(
      between(static_cast<double>(version->level0.size()), kLevel0SlowMin, kLevel0SlowMax),
      between(garbage, limit, limit + kGarbageSlowMax - kGarbageSlowMin));
}

// After each flush and merge, and when a memtable is full.
void EngineImpl::set_pace() {
  const double debt = compaction_debt();
  pause_ns_per_byte_.store(debt * debt * kPauseMaxNsPerByte, std::memory_order_relaxed);
}

void EngineImpl::count_waiting() {
  waiting_memtables_.store(flush_failure_.ok() ? view_->immutables.size() : 0,
                           std::memory_order_relaxed);
}

// The leader's: it comes to rest at the rate of flushes before it has to wait for one to end.
double EngineImpl::pause_for_memory() const {
  const std::size_t waiting = waiting_memtables_.load(std::memory_order_relaxed);
  if (waiting == 0) return 0;
  const double full = static_cast<double>(waiting) + static_cast<double>(active_->memory_bytes()) /
                                                         static_cast<double>(memtable_bytes());
  const double debt =
      std::clamp((full - kMemtablesSlowMin) / (kMemtablesSlowMax - kMemtablesSlowMin), 0.0, 1.0);
  return debt * debt * kPauseMaxNsPerByte;
}

// The leader's, of the group that it has written: when its writers may be answered.
void EngineImpl::price_group() {
  const double ns_per_byte =
      std::max(pause_ns_per_byte_.load(std::memory_order_relaxed), pause_for_memory());
  if (ns_per_byte <= 0) return pace_.remit();
  const std::int64_t now_ns = environment_.clock.boot_ns();
  for (CommitQueue::Writer* const writer : group_) {
    if (!writer->status.ok()) continue;
    writer->answer_not_before_ns =
        pace_.charge(writer->batch->namespaces(), writer->batch->size_bytes(), ns_per_byte, now_ns);
  }
}

// The writer's, when others may lead again: many short pauses, none that is long.
void EngineImpl::keep_pace(std::int64_t not_before_ns) {
  if (not_before_ns == 0) return;
  const std::int64_t begin_ns = environment_.clock.boot_ns();
  const std::int64_t owed_ns = not_before_ns - begin_ns;
  if (owed_ns < kPauseMinNs) return;
  // A single-threaded executor does its work instead.
  if (!environment_.executor.run_one()) {
    MutexLock lock(mutex_);
    static_cast<void>(pause_.wait_for(mutex_, std::min(owed_ns, kPauseMaxNs)));
  }
  const std::int64_t paused_ns =
      std::max<std::int64_t>(environment_.clock.boot_ns() - begin_ns, kPauseMinNs);
  stall_ns_.fetch_add(static_cast<std::uint64_t>(paused_ns));
}

}  // namespace edgecase::engine
