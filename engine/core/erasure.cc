// Erased ranges: hidden from every snapshot at once, then removed from everything that holds their
// bytes. engine/README.md, "Erasure".
#include <algorithm>
#include <utility>

#include "core/engine_impl.h"

namespace edgecase::engine {
namespace {

constexpr std::int64_t kErasureSliceNs = 10'000'000;
constexpr int kLogTurnsMax = 3;

}  // namespace

// What memtables hold counts from the moment it was written.
std::uint64_t EngineImpl::pending_erasures() const {
  std::vector<RangeDelete> all = versions_->pending_erasures();
  const std::vector<RangeDelete> hidden = views_->erased_ranges();
  all.insert(all.end(), hidden.begin(), hidden.end());
  return RangeDeletes(all).newest().size();
}

std::uint64_t EngineImpl::overwritten_bytes() const {
  return remover_.overwritten_bytes() + wal_->overwritten_bytes();
}

// Everything up to `through` in tables, and no longer in the log but in slots that are free. What
// is left of that the compaction lane does.
Status EngineImpl::flush_log(SequenceNumber through) {
  EC_TRY(flush());
  for (int turn = 0; turn < kLogTurnsMax && wal_->current_holds(through); ++turn) {
    EC_TRY(wal_->overwrite_free(through));
    EC_TRY(leader_->turn_log(through));
    EC_TRY(flush());
  }
  return ok();
}

Status EngineImpl::destroy_keys(SequenceNumber through) {
  if (keys_ == nullptr) return ok();
  EC_ASSIGN_OR_RETURN(const std::uint64_t destroyed, keys_->destroy_retired(through));
  destroyed_keys_.fetch_add(destroyed);
  return ok();
}

// Of a drive that is away, or bytes that somebody reads, it is all that can be done now.
Status EngineImpl::leave_pending(const Status& failure, SequenceNumber through) {
  const Status destroyed = destroy_keys(through);
  return failure.code() == StatusCode::Busy && !destroyed.ok() ? destroyed : failure;
}

// Whether a snapshot or an iterator holds a memtable with something of what was erased.
bool EngineImpl::memtables_hold_erased(SequenceNumber through) const {
  const std::vector<std::shared_ptr<const Memtable>> held = views_->kept_memtables();
  if (held.empty()) return false;
  const std::vector<RangeDelete> pending = versions_->pending_erasures();
  return std::any_of(held.begin(), held.end(), [&](const auto& memtable) {
    return std::any_of(pending.begin(), pending.end(), [&](const RangeDelete& each) {
      const auto entries =
          Memtable::cursor(memtable, each.lower, each.upper, Direction::Forward, through);
      return entries->valid();
    });
  });
}

Result<bool> EngineImpl::finish_erasure(SequenceNumber through) {
  if (!leader_->is_replayed()) return false;
  EC_TRY(wal_->overwrite_free(through));
  for (int turn = 0; turn < kLogTurnsMax && wal_->holds(through); ++turn) {
    EC_TRY(leader_->try_turn_log(through));
    EC_TRY(wal_->overwrite_free(through));
  }
  if (wal_->holds(through)) return false;
  if (memtables_hold_erased(through)) {
    revocations_.note();
    return false;
  }
  EC_TRY(destroy_keys(through));
  // No byte is left to be hidden. Who waits looks at the version, which comes last.
  views_->forget_erased(through);
  if (keys_ != nullptr) keys_->forget(through);
  EC_TRY(versions_->finish_erasures(through));
  room_->fill_reserve();
  return true;
}

Result<ErasureReport> EngineImpl::erase() {
  const ErasureStats before = compactor_->erasure_stats();
  const std::uint64_t overwritten_before = overwritten_bytes();
  const std::uint64_t destroyed_before = destroyed_keys_.load();
  const std::uint64_t removed_before = remover_.removed_files();
  const SequenceNumber through = views_->visible();
  ErasureReport report;
  report.ranges = pending_erasures();
  if (report.ranges == 0 && !versions_->has_erasures()) return report;
  Status done = flush_log(through);
  if (!done.ok())
    done = flushes_->with_reserve(std::move(done), [&] { return flush_log(through); });
  if (done.ok()) {
    compactor_->erase_now();
    done = wait_for_erasure(through, before.failures);
  }
  if (!done.ok()) return leave_pending(done, through);
  report.destroyed_keys = destroyed_keys_.load() - destroyed_before;
  report.rewritten_bytes = compactor_->erasure_stats().rewritten_bytes - before.rewritten_bytes;
  report.overwritten_bytes = overwritten_bytes() - overwritten_before;
  report.removed_files = remover_.removed_files() - removed_before;
  return report;
}

Status EngineImpl::wait_for_erasure(SequenceNumber through, std::uint64_t failures_before) {
  const std::int64_t wait_max_ns = std::int64_t{options_.erasure_wait_ms} * 1'000'000;
  std::int64_t waited_ns = 0;
  while (versions_->has_erasures(through)) {
    if (tasks_.run_one()) continue;
    if (compactor_->erasure_stats().failures != failures_before)
      return compactor_->erasure_failure();
    if (!versions_->has_erasures(through)) break;
    if (compactor_->erasure_is_held() && waited_ns >= wait_max_ns)
      return busy("a snapshot or an iterator holds what was erased; it is removed when that goes");
    MutexLock lock(mutex_);
    static_cast<void>(pause_.wait_for(mutex_, kErasureSliceNs));
    waited_ns = compactor_->erasure_is_held() ? waited_ns + kErasureSliceNs : 0;
    lock.unlock();
    if (!compactor_->erasure_is_asked()) compactor_->erase_now();
  }
  return ok();
}

}  // namespace edgecase::engine
