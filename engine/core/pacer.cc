#include "core/pacer.h"

#include <algorithm>

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
// How much more there may be than when nothing of it was worth cleaning; some is not known, but
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
double Pacer::debt_of_merges(std::uint64_t flushed_bytes) {
  if (!compactor_.failure().ok()) return 0;  // waiting would not help
  const std::shared_ptr<const Version> version = store_.versions.current();
  const auto between = [](double value, double none, double whole) {
    return std::clamp((value - none) / (whole - none), 0.0, 1.0);
  };
  std::uint64_t bytes = 0;
  for (const auto& [number, live_bytes] : version->live_bytes) bytes += live_bytes;
  const GarbageEstimate& estimate = compactor_.garbage();
  // With what is in memory, and what may come there before this is asked again: flushes come in
  // bursts.
  const std::uint64_t memtable_bytes = store_.budget.memtable_bytes();
  const std::uint64_t coming = memtable_bytes + store_.views.immutable_bytes();
  const auto dying =
      static_cast<std::uint64_t>(estimate.dying_share() * static_cast<double>(coming));
  const double garbage = bytes < kGarbageSlowMinBytes
                             ? 0
                             : garbage_share(*version, estimate.suspected_bytes() + dying, coming);
  // What waits in memory goes up and down by so much whatever merges do.
  const double burst = kBurstMemtables * static_cast<double>(memtable_bytes) *
                       estimate.dying_share() /
                       static_cast<double>(std::max<std::uint64_t>(1, bytes));
  const double natural = kGarbageSlowMin + estimate.grace() + burst;
  // What is not worth cleaning yet becomes no less when writers have waited.
  const double left = estimate.idle_share();
  const double idle = left > 0 ? left + kGarbageSinceLook + burst : 0;
  double limit = 0;
  {
    MutexLock lock(mutex_);
    limit = garbage_limit_.next(natural, garbage, idle, flushed_bytes, bytes);
  }
  return std::max(
      between(static_cast<double>(version->level0.size()), kLevel0SlowMin, kLevel0SlowMax),
      between(garbage, limit, limit + kGarbageSlowMax - kGarbageSlowMin));
}

void Pacer::look(std::uint64_t flushed_bytes) {
  const double debt = debt_of_merges(flushed_bytes);
  ns_per_byte_.store(debt * debt * kPauseMaxNsPerByte, std::memory_order_relaxed);
}

// Writers come to rest at the rate of flushes before they have to wait for one to end. While
// flushes fail waiting would not help.
double Pacer::pause_for_memory(const Memtable& active) const {
  const std::size_t waiting = store_.views.immutable_count();
  if (waiting == 0 || store_.health.is_failing(Work::Flush)) return 0;
  const double full =
      static_cast<double>(waiting) + static_cast<double>(active.memory_bytes()) /
                                         static_cast<double>(store_.budget.memtable_bytes());
  const double debt =
      std::clamp((full - kMemtablesSlowMin) / (kMemtablesSlowMax - kMemtablesSlowMin), 0.0, 1.0);
  return debt * debt * kPauseMaxNsPerByte;
}

void Pacer::price(std::span<CommitQueue::Writer* const> group, const Memtable& active) {
  const double ns_per_byte =
      std::max(ns_per_byte_.load(std::memory_order_relaxed), pause_for_memory(active));
  if (ns_per_byte <= 0) return accounts_.remit();
  const std::int64_t now_ns = store_.environment.clock.boot_ns();
  for (CommitQueue::Writer* const writer : group) {
    if (!writer->status.ok()) continue;
    writer->answer_not_before_ns = accounts_.charge(
        writer->batch->namespaces(), writer->batch->size_bytes(), ns_per_byte, now_ns);
  }
}

void Pacer::keep(std::int64_t answer_not_before_ns) {
  if (answer_not_before_ns == 0) return;
  const std::int64_t begin_ns = store_.environment.clock.boot_ns();
  const std::int64_t owed_ns = answer_not_before_ns - begin_ns;
  if (owed_ns < kPauseMinNs) return;
  // A single-threaded executor does its work instead.
  if (!store_.tasks.run_one()) {
    MutexLock lock(mutex_);
    static_cast<void>(pause_.wait_for(mutex_, std::min(owed_ns, kPauseMaxNs)));
  }
  add_stall(std::max<std::int64_t>(store_.environment.clock.boot_ns() - begin_ns, kPauseMinNs));
}

}  // namespace edgecase::engine
