// Erased ranges: hidden from every snapshot at once, then removed from everything that holds their
// bytes. engine/README.md, "Erasure".
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/engine_impl.h"
#include "core/reader.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

constexpr std::int64_t kErasureSliceNs = 10'000'000;
constexpr int kLogTurnsMax = 3;
constexpr int kReserveAttempts = 3;
constexpr std::int64_t kFillReserveNs = 10'000'000'000;

}  // namespace

// Snapshots that are held know nothing of what is erased after them.
void EngineImpl::hide_for_good(const RangeDelete& erased) {
  const bool names_nobody = codec_of(namespace_of(erased.lower)) == GroupCodec::Series;
  MutexLock lock(mutex_);
  erased_log_.add(erased);
  // The same ranges may be erased again and again while they are pending.
  if (erased_log_.list().size() >= 2 * erased_log_min_) {
    erased_log_.set(RangeDeletes(erased_log_.list()).newest());
    erased_log_min_ = std::max(kErasedLogMin, erased_log_.list().size());
  }
  has_erased_.store(true, std::memory_order_release);
  if (keys_ != nullptr) keys_->retire(erased.lower, erased.upper, erased.sequence);
  // Ranges of readings name nobody; others count as all of their namespace.
  const NamespaceId id = namespace_of(erased.lower);
  if (names_nobody) {
    revocations_.note_erased(erased.lower, erased.upper);
  } else {
    revocations_.note_erased(make_full_key(id, {}), make_full_key(id + 1, {}));
  }
}

void EngineImpl::forget_erased(SequenceNumber through) {
  MutexLock lock(mutex_);
  std::vector<RangeDelete> left = erased_log_.list();
  std::erase_if(left, [&](const RangeDelete& each) { return each.sequence <= through; });
  has_erased_.store(!left.empty(), std::memory_order_release);
  erased_log_.set(std::move(left));
  if (keys_ != nullptr) keys_->forget(through);
}

// What memtables hold counts from the moment it was written.
std::uint64_t EngineImpl::pending_erasures() const {
  std::vector<RangeDelete> all = versions_->pending_erasures();
  MutexLock lock(mutex_);
  all.insert(all.end(), erased_log_.list().begin(), erased_log_.list().end());
  return RangeDeletes(all).newest().size();
}

std::uint64_t EngineImpl::overwritten_bytes() const {
  return remover_.overwritten_bytes() + log_overwritten_bytes_.load();
}

// The leader's. What is newer than `through` is to lie in no segment that holds what is older, nor
// beside it in a memtable; and segments whose records are in tables come free. A log at its limit
// may need it twice.
Status EngineImpl::turn_log(SequenceNumber through) {
  if (wal_->current_holds(through)) {
    EC_TRY(rotate_memtable());
    const Status started = start_segment(0);
    if (!started.ok() && started.code() != StatusCode::Busy) return started;
  }
  {
    // A flush that runs releases them itself.
    MutexLock lock(mutex_);
    if (!view_->immutables.empty()) return ok();
  }
  EC_ASSIGN_OR_RETURN(const bool released, release_flushed_wal());
  // What earlier segments hold and no table does is in the active memtable.
  return released || !wal_->has_closed() ? ok() : rotate_memtable();
}

Status EngineImpl::overwrite_free_log(SequenceNumber through) {
  EC_ASSIGN_OR_RETURN(const std::uint64_t bytes, wal_->overwrite_free(through));
  log_overwritten_bytes_.fetch_add(bytes);
  return ok();
}

// Everything up to `through` in tables, and no longer in the log but in slots that are free. What
// is left of that the compaction lane does.
Status EngineImpl::flush_log(SequenceNumber through) {
  EC_TRY(flush());
  for (int turn = 0; turn < kLogTurnsMax && wal_->current_holds(through); ++turn) {
    EC_TRY(overwrite_free_log(through));
    Status turned;
    lead([&] { turned = turn_log(through); });
    EC_TRY(turned);
    EC_TRY(flush());
  }
  return ok();
}

// On the compaction lane: leads for a moment, as try_heal() does, but waits for nobody.
Status EngineImpl::try_turn_log(SequenceNumber through) {
  if (!commits_.try_lead()) return ok();
  bool has_room = false;
  {
    MutexLock lock(mutex_);
    has_room = view_->immutables.size() <= 1;
  }
  const bool may_turn = has_room && !wal_failing_.load(std::memory_order_acquire);
  const Status turned = may_turn ? turn_log(through) : ok();
  commits_.leave();
  return turned;
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
  std::vector<std::shared_ptr<const Memtable>> held;
  {
    MutexLock lock(mutex_);
    for (const auto& retired : retired_memtables_)
      if (auto memtable = retired.lock()) held.push_back(std::move(memtable));
  }
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
  if (!recovered_) return false;
  EC_TRY(overwrite_free_log(through));
  for (int turn = 0; turn < kLogTurnsMax && wal_->holds(through); ++turn) {
    EC_TRY(try_turn_log(through));
    EC_TRY(overwrite_free_log(through));
  }
  if (wal_->holds(through)) return false;
  if (memtables_hold_erased(through)) {
    revocations_.note();
    return false;
  }
  EC_TRY(destroy_keys(through));
  // No byte is left to be hidden. Who waits looks at the version, which comes last.
  forget_erased(through);
  EC_TRY(versions_->finish_erasures(through));
  fill_reserve();
  return true;
}

void EngineImpl::fill_reserve() {
  if (options_.erasure_reserve_bytes == 0) return;
  environment_.executor.schedule(Lane::Compaction, [this, gate = gate_] {
    if (!gate->enter()) return;
    // Not into the directory that an unmounted drive leaves behind.
    if (!check_values().ok() || !reserve_.fill()) fill_reserve_later();
    gate->leave();
  });
}

// Once there is room, and no erasure pending that needs it, and that fills it when it is done.
void EngineImpl::fill_reserve_later() {
  if (reserve_fill_scheduled_.exchange(true)) return;
  environment_.executor.schedule_after(Lane::Compaction, kFillReserveNs, [this, gate = gate_] {
    if (!gate->enter()) return;
    reserve_fill_scheduled_ = false;
    if (versions_->has_erasures()) {
      fill_reserve_later();
    } else {
      fill_reserve();
    }
    gate->leave();
  });
}

bool EngineImpl::release_reserve() {
  if (!reserve_.release()) return false;
  fill_reserve_later();
  return true;
}

bool EngineImpl::lacks_space(const Status& failure) const {
  if (failure.code() == StatusCode::OutOfSpace) return true;
  MutexLock lock(mutex_);
  return flush_failure_.code() == StatusCode::OutOfSpace ||
         wal_failure_.code() == StatusCode::OutOfSpace;
}

// What `attempt` answers once what is kept for erasing has been let go; `failure` where that is no
// matter of space, or nothing is kept.
Status EngineImpl::use_reserve(Status failure, const std::function<Status()>& attempt) {
  if (!lacks_space(failure) || !release_reserve()) return failure;
  // The flush that runs meanwhile may have begun before there was room.
  for (int attempts = 0; attempts < kReserveAttempts && !failure.ok(); ++attempts) {
    {
      MutexLock lock(mutex_);
      flush_again_not_before_ns_ = 0;
    }
    failure = attempt();
  }
  return failure;
}

Result<ErasureReport> EngineImpl::erase() {
  const ErasureStats before = compactor_->erasure_stats();
  const std::uint64_t overwritten_before = overwritten_bytes();
  const std::uint64_t destroyed_before = destroyed_keys_.load();
  const std::uint64_t removed_before = remover_.removed_files();
  const SequenceNumber through = visible_.load();
  ErasureReport report;
  report.ranges = pending_erasures();
  if (report.ranges == 0 && !versions_->has_erasures()) return report;
  Status done = flush_log(through);
  if (!done.ok()) done = use_reserve(std::move(done), [&] { return flush_log(through); });
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
    if (environment_.executor.run_one()) continue;
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

namespace {

// What memtables hold lies in the log: in the first segment that ends behind it.
void add_log_shares(const VisibleView& at, const FullKeyRange& range,
                    const std::vector<Wal::File>& log, std::vector<FileShare>& files) {
  std::map<std::string, FileShare> shares;
  std::vector<std::shared_ptr<const Memtable>> memtables{at.view->active};
  memtables.insert(memtables.end(), at.view->immutables.begin(), at.view->immutables.end());
  for (const auto& memtable : memtables) {
    const auto entries =
        Memtable::cursor(memtable, range.lower, range.upper, Direction::Forward, at.visible);
    for (; entries->valid() && entries->load().ok(); entries->next()) {
      const auto segment = std::find_if(log.begin(), log.end(), [&](const Wal::File& file) {
        return entries->sequence() <= file.last_sequence;
      });
      if (segment == log.end()) continue;
      FileShare& share = shares[segment->path];
      share.path = segment->path;
      share.layer = FileLayer::Log;
      share.bytes += user_key_of(entries->full_key()).size() + entries->value().size();
      share.file_bytes = segment->bytes;
    }
  }
  for (auto& [path, share] : shares) files.push_back(std::move(share));
}

}  // namespace

Result<std::vector<FileShare>> EngineImpl::locate(NamespaceId namespace_id, const KeyRange& range) {
  EC_TRY(check_readable(namespace_id));
  const FullKeyRange wanted = full_key_range(namespace_id, range);
  std::vector<FileShare> files;
  if (wanted.empty()) return files;
  const std::vector<Wal::File> log = wal_->files();
  const VisibleView at = visible_view();
  const Version& version = *at.view->version;
  auto shares = shares_of_range(version, *tables_, wanted);
  if (!shares.ok()) return explain_read_failure(shares.status());
  for (const TablePointer& table : version.tables) {
    const auto share = shares->metadata.find(table->number);
    if (share == shares->metadata.end()) continue;
    files.push_back({metadata_table_path(options_.metadata_directory, table->number),
                     FileLayer::Metadata, share->second, table->size_bytes});
  }
  for (const auto& [number, bytes] : shares->values) {
    const auto file = version.value_files.find(number);
    if (file == version.value_files.end()) {
      return corruption("metadata lead to value file " + std::to_string(number) +
                        ", which does not belong to the store");
    }
    files.push_back({value_table_path(options_.metadata_directory, options_.values_directory,
                                      file->second.placement, number),
                     FileLayer::Values, bytes, file->second.size_bytes});
  }
  add_log_shares(at, wanted, log, files);
  std::stable_sort(files.begin(), files.end(),
                   [](const FileShare& a, const FileShare& b) { return a.bytes > b.bytes; });
  return files;
}

}  // namespace edgecase::engine
