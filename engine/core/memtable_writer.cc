#include "core/commit_leader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/coding.h"
#include "core/wal.h"
#include "edgecase/status.h"

namespace edgecase::engine {
namespace {

// Immutable memtables beside the active one; the next writer waits.
constexpr std::size_t kImmutablesMax = 2;

// Entries of a batch whose places are fetched from memory side by side.
constexpr std::size_t kDraftsMax = 8;

// Reads search them, and each changes what is searched.
constexpr std::uint32_t kRangeDeletesPerMemtable = 1024;

constexpr std::int64_t kLongAgoNs = std::numeric_limits<std::int64_t>::min();

}  // namespace

std::optional<Memtable::Draft> MemtableWriter::draft_of(const WriteBatch& batch) {
  if (batch.count() != 1 || batch.range_deletes() != 0 || !batch.borrowed().empty())
    return std::nullopt;
  const BatchEntry entry = batch.only_entry();
  if (codec_of(entry.namespace_id) != GroupCodec::Plain ||
      !Memtable::is_small(entry.key, entry.value))
    return std::nullopt;
  return active_->draft(entry.namespace_id, entry.key, entry.kind, entry.value);
}

void MemtableWriter::apply(const Memtable::Draft& draft) {
  static_cast<void>(log_expiry());  // may have new rules; such an entry expires never
  active_->add(draft, ++last_sequence_);
  add_alone(user_bytes_, draft.user_bytes);
}

void MemtableWriter::apply(SequenceNumber first, WriteBatchReader& entries) {
  std::uint64_t user_bytes = 0;
  SequenceNumber sequence = first;
  NamespaceId known = 0;
  GroupCodec codec = GroupCodec::Plain;
  const ExpiryView& expiry = log_expiry();
  std::int64_t expires_ns = kNeverNs;
  std::array<Memtable::Draft, kDraftsMax> drafts;
  std::size_t drafted = 0;
  const auto add_drafts = [&]() EC_REQUIRES(leading) {
    for (std::size_t i = 0; i < drafted; ++i) active_->add(drafts[i], sequence++);
    drafted = 0;
  };
  while (const auto entry = entries.next()) {
    if (entry->namespace_id != known) {
      known = entry->namespace_id;
      codec = codec_of(known);
    }
    user_bytes +=
        entry->is_range() ? 0 : entry->key.size() + entry->value.size() + entry->end.size();
    const bool is_plain = !entry->is_range() && codec == GroupCodec::Plain && entry->end.empty();
    if (is_plain && Memtable::is_small(entry->key, entry->value)) {
      drafts[drafted++] = active_->draft(known, entry->key, entry->kind, entry->value);
      if (drafted == drafts.size()) add_drafts();
      continue;
    }
    add_drafts();
    if (entry->is_range()) {
      RangeDelete made = make_range_delete(known, entry->key, entry->value, sequence++);
      made.erases = entry->kind == EntryKind::EraseRange;
      apply_range(std::move(made));
      continue;
    }
    if (!expiry.empty() && codec == GroupCodec::Series)
      expires_ns = std::min(expires_ns, log_expiry_of(known, entry->key));
    active_->add(*entry, sequence++, codec);
  }
  add_drafts();
  EC_CHECK(entries.status().ok());
  if (!expiry.empty()) store_.wal.note_expiry(expires_ns);
  add_alone(user_bytes_, user_bytes);
  last_sequence_ = sequence - 1;
}

void MemtableWriter::apply_range(RangeDelete made) {
  if (made.erases) {
    store_.views.hide_for_good(made);
    if (store_.keys != nullptr) store_.keys->retire(made.lower, made.upper, made.sequence);
    // Ranges of readings name nobody; others count as all of their namespace.
    const NamespaceId id = namespace_of(made.lower);
    if (codec_of(id) == GroupCodec::Series) {
      store_.revocations.note_erased(made.lower, made.upper);
    } else {
      store_.revocations.note_erased(make_full_key(id, {}), make_full_key(id + 1, {}));
    }
  }
  active_->add_range_delete(std::move(made));
}

void MemtableWriter::replay_erasure(const RangeDelete& erased) {
  if (erased.sequence <= std::max(last_sequence_, store_.versions.flushed_sequence())) return;
  last_sequence_ = erased.sequence;
  apply_range(erased);
}

// An id is never used for another namespace.
GroupCodec MemtableWriter::codec_of(NamespaceId id) {
  if (id < codecs_.size() && codecs_[id]) return *codecs_[id];
  const auto info = store_.versions.find_namespace(id);
  if (!info.ok()) return GroupCodec::Plain;
  if (id >= codecs_.size()) codecs_.resize(id + 1);
  codecs_[id] = info->options.codec;
  return info->options.codec;
}

const ExpiryView& MemtableWriter::log_expiry() {
  auto rules = store_.versions.retention();
  if (rules.get() != log_expiry_.rules()) {
    // At the beginning of time nothing has expired but what earlier rules had let expire.
    log_expiry_ = ExpiryView(std::move(rules), kLongAgoNs);
    series_.namespace_id = 0;
    // What was said of records before may no longer be so.
    store_.wal.forget_expiries();
  }
  return log_expiry_;
}

std::int64_t MemtableWriter::log_expiry_of(NamespaceId id, ByteView key) {
  if (key.size() < sizeof(std::uint64_t)) return kNeverNs;
  const ByteView part = key.substr(0, key.size() - sizeof(std::uint64_t));
  if (id != series_.namespace_id || part != ByteView(series_.key_part)) {
    series_.namespace_id = id;
    series_.key_part.assign(part);
    const Bytes full_part = make_full_key(id, part);
    series_.retention_ns = log_expiry_.retention_ns(full_part);
    series_.floor = log_expiry_.horizon(full_part);
  }
  const std::uint64_t ordinal = load_ordinal(key.data() + part.size());
  if (ordinal < series_.floor) return kLongAgoNs;
  return expiry_of(time_of_ordinal(ordinal), series_.retention_ns);
}

Status MemtableWriter::make_room() {
  if (active_->memory_bytes() < store_.budget.memtable_bytes() &&
      active_->range_delete_count() < kRangeDeletesPerMemtable)
    return ok();
  return rotate();
}

Status MemtableWriter::rotate() {
  if (active_->entry_count() == 0) return ok();
  for (;;) {
    const std::uint64_t flushes_before = flushes_.flushes();
    if (store_.views.immutable_count() < kImmutablesMax) break;
    EC_TRY(flushes_.wait_for(flushes_before));
  }
  auto fresh = std::make_shared<Memtable>(store_.budget.memtable_bytes());
  store_.views.rotate(fresh, last_sequence_);
  active_ = std::move(fresh);
  pacer_.look(flushes_.written_bytes());
  flushes_.schedule();
  return ok();
}

bool MemtableWriter::is_large(std::size_t batch_bytes) const {
  return batch_bytes >=
         std::max<std::uint64_t>(store_.budget.memtable_bytes(), CommitQueue::kGroupMaxBytes);
}

Status MemtableWriter::empty() {
  EC_TRY(rotate());
  for (;;) {
    const std::uint64_t flushes_before = flushes_.flushes();
    if (store_.views.immutable_count() == 0) return ok();
    EC_TRY(flushes_.wait_for(flushes_before));
  }
}

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
