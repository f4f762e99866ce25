#include "core/compaction_door.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "compaction/due_sources.h"
#include "core/commit_leader.h"
#include "core/drives.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/retention.h"
#include "scrub/scrubber.h"

namespace edgecase::engine {

// Drops whole namespaces. Merges ask here what of their inputs is dead.

void EngineDropRule::begin_step() {
  version_ = versions_.current();
  if (auto rules = versions_.retention()) expiry_ = {std::move(rules), clock_.removal_ns(), mode_};
  range_hint_ = 0;
}

// What is kept of a version keeps its files.
void EngineDropRule::end_step() {
  version_ = nullptr;
  expiry_ = {};
  asked_.reset();
}

bool EngineDropRule::may_expire(NamespaceId id) {
  if (expiry_.empty()) return false;
  if (asked_ != id) {
    asked_ = id;
    asked_may_expire_ = expiry_.rules()->has_namespace(id);
  }
  return asked_may_expire_;
}

DropRule::Verdict EngineDropRule::judge_expiry(const UMetaRecord& record) {
  if (!may_expire(namespace_of(record.first))) return Verdict::Keep;
  const auto file = version_->value_files.find(record.pointer.file_number);
  if (file == version_->value_files.end()) return Verdict::Keep;
  if (is_over(file->second, record.first, record.last, expiry_)) return Verdict::Drop;
  if (record.type == ItemType::Single && expiry_.hides(record.first)) return Verdict::Drop;
  const bool is_emptied = given_up_permille(file->second, expiry_) >= kGivenUpPermille;
  if ((mode_ == ExpiryMode::Exact || is_emptied) && expiry_.hides_all(record.first, record.last))
    return Verdict::Drop;
  if (expiry_.rules()->changed_since(record.first, record.last, file->second.rule_epoch) ||
      expiry_.is_coarse(file->second.expiry_min_ns, file->second.expiry_max_ns))
    return Verdict::Rewrite;
  const bool looks =
      is_emptied || (mode_ == ExpiryMode::Exact && file->second.expiry_min_ns < expiry_.now_ns());
  const bool some_expired =
      looks && record.type != ItemType::Single && expiry_.may_hide(record.first, record.last);
  return some_expired ? Verdict::Inspect : Verdict::Keep;
}

DropRule::Verdict EngineDropRule::judge_item(const UMetaRecord& record) {
  if (versions_.dropped().contains(namespace_of(record.first))) return Verdict::Drop;
  const Verdict expired = judge_expiry(record);
  if (expired == Verdict::Drop || version_->range_deletes == nullptr) return expired;
  const RangeDeletes& deletes = *version_->range_deletes;
  if (deletes.covers(record.first, record.last, record.sequence_max)) return Verdict::Drop;
  if (expired != Verdict::Keep) return expired;
  return deletes.touches(record.first, record.last, record.sequence_min) ? Verdict::Inspect
                                                                         : Verdict::Keep;
}

bool EngineDropRule::drops_entry(ByteView full_key, SequenceNumber sequence) {
  const NamespaceId id = namespace_of(full_key);
  if (versions_.dropped().contains(id)) return true;
  if (may_expire(id) && expiry_.hides(full_key)) return true;
  return version_->range_deletes != nullptr &&
         version_->range_deletes->covering(full_key, UINT64_MAX, range_hint_) > sequence;
}

void CompactionDoor::schedule(std::int64_t delay_ns, std::function<void()> task) {
  store_.tasks.schedule_after(Lane::Compaction, delay_ns, std::move(task));
}

void CompactionDoor::publish() {
  owners_.pacer.look(owners_.flushes.written_bytes());
  store_.views.publish();
}

void CompactionDoor::revoke() {
  store_.revocations.note();
}

void CompactionDoor::report(const Status& health) {
  if (health.ok()) return store_.health.succeed(Work::Merge);
  store_.health.fail(Work::Merge, health);
}

std::uint64_t CompactionDoor::user_bytes() const {
  return owners_.leader.user_bytes();
}

std::uint64_t CompactionDoor::flushed_bytes() const {
  return owners_.flushes.written_bytes();
}

Status CompactionDoor::check_drives() {
  EC_TRY(check_metadata_identity(store_.environment.file_system, store_.options.metadata_directory,
                                 store_.id));
  return store_.uses_values_drive() ? owners_.values.check() : ok();
}

bool CompactionDoor::is_roomy() const {
  return owners_.room.is_roomy();
}

bool CompactionDoor::release_reserve() {
  return owners_.room.release_reserve();
}

std::set<FileNumber> CompactionDoor::lost_files() {
  return owners_.scrubber.lost_files();
}

bool CompactionDoor::look_for_damage(const std::vector<TablePointer>& tables) {
  return owners_.scrubber.look_at(tables);
}

ExpiryView CompactionDoor::expiry() {
  return store_.expiry_of_bytes();
}

RaiseLimits CompactionDoor::raise_limits() {
  return store_.feed_bounds.limits();
}

Result<bool> CompactionDoor::clear_expired_log() {
  EC_TRY(owners_.retention.note_mark());
  return owners_.retention.clear_log();
}

Result<bool> CompactionDoor::finish_erasure(SequenceNumber through) {
  return owners_.erasure.finish(through);
}

namespace {

constexpr std::int64_t kErasureSliceNs = 10'000'000;
constexpr int kLogTurnsMax = 3;

}  // namespace

std::uint64_t ErasureRound::pending_ranges() const {
  std::vector<RangeDelete> all = store_.versions.pending_erasures();
  const std::vector<RangeDelete> hidden = store_.views.erased_ranges();
  all.insert(all.end(), hidden.begin(), hidden.end());
  return RangeDeletes(all).newest().size();
}

std::uint64_t ErasureRound::overwritten_bytes() const {
  return store_.remover.overwritten_bytes() + store_.wal.overwritten_bytes();
}

// Everything up to `through` in tables, and no longer in the log but in slots that are free. What
// is left of that the compaction lane does.
Status ErasureRound::flush_log(SequenceNumber through) {
  EC_TRY(leader_.flush());
  for (int turn = 0; turn < kLogTurnsMax && store_.wal.current_holds(through); ++turn) {
    EC_TRY(store_.wal.overwrite_free(through));
    EC_TRY(leader_.turn_log(through));
    EC_TRY(leader_.flush());
  }
  return ok();
}

Status ErasureRound::destroy_keys(SequenceNumber through) {
  if (store_.keys == nullptr) return ok();
  EC_ASSIGN_OR_RETURN(const std::uint64_t destroyed, store_.keys->destroy_retired(through));
  destroyed_keys_.fetch_add(destroyed);
  return ok();
}

// Whether a snapshot or an iterator holds a memtable with something of what was erased.
bool ErasureRound::memtables_hold(SequenceNumber through) const {
  const std::vector<std::shared_ptr<const Memtable>> held = store_.views.kept_memtables();
  if (held.empty()) return false;
  const std::vector<RangeDelete> pending = store_.versions.pending_erasures();
  return std::any_of(held.begin(), held.end(), [&](const auto& memtable) {
    return std::any_of(pending.begin(), pending.end(), [&](const RangeDelete& each) {
      const auto entries =
          Memtable::cursor(memtable, each.lower, each.upper, Direction::Forward, through);
      return entries->valid();
    });
  });
}

Result<bool> ErasureRound::finish(SequenceNumber through) {
  if (!leader_.is_replayed()) return false;
  EC_TRY(store_.wal.overwrite_free(through));
  for (int turn = 0; turn < kLogTurnsMax && store_.wal.holds(through); ++turn) {
    EC_TRY(leader_.try_turn_log(through));
    EC_TRY(store_.wal.overwrite_free(through));
  }
  if (store_.wal.holds(through)) return false;
  if (memtables_hold(through)) {
    store_.revocations.note();
    return false;
  }
  EC_TRY(destroy_keys(through));
  // No byte is left to be hidden. Who waits looks at the version, which comes last.
  store_.views.forget_erased(through);
  if (store_.keys != nullptr) store_.keys->forget(through);
  EC_TRY(store_.versions.finish_erasures(through));
  room_.fill_reserve();
  return true;
}

Result<ErasureReport> ErasureRound::erase() {
  const ErasureStats before = compactor_.erasures().stats();
  const std::uint64_t overwritten_before = overwritten_bytes();
  const std::uint64_t destroyed_before = destroyed_keys_.load();
  const std::uint64_t removed_before = store_.remover.removed_files();
  const SequenceNumber through = store_.views.visible();
  ErasureReport report;
  report.ranges = pending_ranges();
  if (report.ranges == 0 && !store_.versions.has_erasures()) return report;
  Status done = flush_log(through);
  if (!done.ok()) done = flushes_.with_reserve(std::move(done), [&] { return flush_log(through); });
  if (done.ok()) {
    compactor_.erase_now();
    done = wait(through, before.failures);
  }
  if (!done.ok()) {
    // Leaves ranges pending: a drive is away, or somebody reads the bytes; no more can be done.
    const Status destroyed = destroy_keys(through);
    return done.code() == StatusCode::Busy && !destroyed.ok() ? destroyed : done;
  }
  report.destroyed_keys = destroyed_keys_.load() - destroyed_before;
  report.rewritten_bytes = compactor_.erasures().stats().rewritten_bytes - before.rewritten_bytes;
  report.overwritten_bytes = overwritten_bytes() - overwritten_before;
  report.removed_files = store_.remover.removed_files() - removed_before;
  return report;
}

Status ErasureRound::wait(SequenceNumber through, std::uint64_t failures_before) {
  const std::int64_t wait_max_ns = std::int64_t{store_.options.erasure_wait_ms} * 1'000'000;
  std::int64_t waited_ns = 0;
  while (store_.versions.has_erasures(through)) {
    if (store_.tasks.run_one()) continue;
    if (compactor_.erasures().stats().failures != failures_before)
      return compactor_.erasures().failure();
    if (!store_.versions.has_erasures(through)) break;
    if (compactor_.erasures().is_held() && waited_ns >= wait_max_ns)
      return busy("a snapshot or an iterator holds what was erased; it is removed when that goes");
    MutexLock lock(mutex_);
    static_cast<void>(pause_.wait_for(mutex_, kErasureSliceNs));
    waited_ns = compactor_.erasures().is_held() ? waited_ns + kErasureSliceNs : 0;
    lock.unlock();
    if (!compactor_.erasures().is_asked()) compactor_.erase_now();
  }
  return ok();
}

void ErasureRound::add_to(Stats& stats) const {
  stats.erasure = compactor_.erasures().stats();
  stats.erasure.pending_ranges = pending_ranges();
  stats.erasure.overwritten_bytes = overwritten_bytes();
  if (store_.keys != nullptr)
    stats.encryption = {true, store_.keys->size(), destroyed_keys_.load(),
                        store_.keys->shares_keys()};
}

}  // namespace edgecase::engine
