// Group commit. One writer leads (commit_queue.h): it takes everybody who waits, appends their
// batches to the WAL, syncs once if anyone asked for it, adds the entries to the memtable, makes
// them visible and wakes the others. Whoever comes meanwhile forms the next group.
//
// A group is committed in runs, each within one WAL segment: only when a run is in the log whole,
// and synced if wanted, does anything of it reach the memtable, so that a batch that failed is
// never seen.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/counter.h"
#include "base/write_batch_reader.h"
#include "core/engine_impl.h"

namespace edgecase::engine {
namespace {

// Of a WAL record that several share; a larger one has a record to itself.
constexpr std::size_t kRecordMaxBytes = 16u << 10;
constexpr std::size_t kRecordBatchesMax = 32;

// Entries of a batch whose places are fetched from memory side by side.
constexpr std::size_t kDraftsMax = 8;

// Until the log counts as resting.
constexpr std::int64_t kRestNs = 1'000'000'000;

// Reads search them, and each changes what is searched.
constexpr std::uint32_t kRangeDeletesPerMemtable = 1024;

// Of a batch that borrows: it is larger than those that share a record.
std::vector<ByteView> parts_of(const WriteBatch& batch) {
  static_assert(WriteBatch::kBorrowedMinBytes > kRecordMaxBytes);
  std::vector<ByteView> parts;
  std::size_t begin = 0;
  for (const auto& [at, end] : batch.borrowed()) {
    parts.push_back(batch.encoded().substr(begin, at - begin));
    parts.push_back(end);
    begin = at;
  }
  parts.push_back(batch.encoded().substr(begin));
  return parts;
}

}  // namespace

Status EngineImpl::check_batch(const WriteBatch& batch) const {
  if (batch.over_limit())
    return invalid_argument("a key is over " + std::to_string(kKeySizeMaxBytes) +
                            " bytes or a value over " + std::to_string(kValueSizeMaxBytes));
  if (batch.size_bytes() > kBatchSizeMaxBytes)
    return invalid_argument("the batch has " + std::to_string(batch.size_bytes()) +
                            " bytes, more than " + std::to_string(kBatchSizeMaxBytes));
  for (const NamespaceId id : batch.namespaces()) EC_TRY(check_namespace(id));
  return batch.range_deletes() == 0 ? ok() : check_range_deletes(batch);
}

Status EngineImpl::check_range_deletes(const WriteBatch& batch) const {
  const std::size_t waiting = versions_->waiting_range_deletes();
  const std::size_t waiting_max = range_deletes_max(options_.memory_limit_bytes);
  if (batch.range_deletes() <= kRangeDeletesPerBatchMax && waiting < waiting_max) return ok();
  if (batch.range_deletes() > kRangeDeletesPerBatchMax)
    return invalid_argument("a batch has at most " + std::to_string(kRangeDeletesPerBatchMax) +
                            " range deletes");
  compactor_->wake();
  return busy(std::to_string(waiting) + " range deletes wait for merges, the most");
}

Status EngineImpl::check_namespace(NamespaceId id) const {
  if (versions_->has_namespace(id)) return ok();
  if (versions_->was_given_out(id))
    return invalid_argument("namespace " + std::to_string(id) + " was dropped");
  return invalid_argument("there is no namespace " + std::to_string(id));
}

Result<std::uint64_t> EngineImpl::check_entries(ByteView payload) const {
  WriteBatchReader entries(payload);
  std::optional<NamespaceId> known;
  std::uint64_t count = 0;
  while (const auto entry = entries.next()) {
    ++count;
    if (entry->namespace_id == known) continue;
    // What was written to a namespace before it was dropped is no damage.
    if (!versions_->was_given_out(entry->namespace_id))
      return corruption("there is no namespace " + std::to_string(entry->namespace_id));
    known = entry->namespace_id;
  }
  EC_TRY(entries.status());
  return count;
}

Status EngineImpl::write(const WriteBatch& batch, Durability durability) {
  EC_TRY(check_batch(batch));
  if (batch.count() == 0 && companion_.load() == nullptr) return ok();
  CommitQueue::Writer writer;
  writer.batch = &batch;
  // A key that was destroyed does not return if a power cut takes the erasure back.
  const bool destroys = keys_ != nullptr && batch.range_deletes() > 0;
  writer.durability = destroys ? Durability::Sync : durability;

  if (writer.durability != Durability::Sync && commits_.try_lead()) {
    group_.push_back(&writer);
    commit_group();
    visible_.store(last_sequence_, std::memory_order_release);
    group_.clear();
    commits_.leave();
  } else if (commits_.wait_for_turn(writer, group_)) {
    commit_group();
    visible_.store(last_sequence_, std::memory_order_release);
    commits_.finish(group_, synced_ns_);
  }
  keep_pace(writer.answer_not_before_ns);
  return std::move(writer.status);
}

void EngineImpl::set_commit_companion(CommitCompanion* companion) {
  lead([&] { companion_.store(companion); });
}

void EngineImpl::commit_group() {
  add_alone(commit_groups_, 1);
  synced_ns_ = 0;
  const bool accompanied = ask_companion();
  const bool makes_room = std::any_of(group_.begin(), group_.end(),
                                      [](const auto* each) { return each->batch->makes_room(); });
  for (std::size_t at = 0; at < group_.size();) {
    const WriteBatch& batch = *group_[at]->batch;
    // What is noted of an erasure comes with it, wherever there is room for that.
    const bool may_use_reserve = batch.makes_room() || (accompanied && at == 0 && makes_room);
    Status prepared = prepare_for(batch, may_use_reserve);
    note_prepared(prepared);
    // Smaller ones are taken where this one is not.
    if (prepared.ok() && is_large(group_[at]->batch->size_bytes())) prepared = empty_memtables();
    if (!prepared.ok()) {
      group_[at++]->status = prepared;
      continue;
    }
    at = commit_run(at);
  }
  if (accompanied) {
    group_.erase(group_.begin());
    companion_.load()->committed(companion_writer_.status);
  }
  price_group();
}

// True: what it adds is the first of the group now.
bool EngineImpl::ask_companion() {
  CommitCompanion* const companion = companion_.load();
  if (companion == nullptr) return false;
  companion_batch_.clear();
  companion->add_to(companion_batch_);
  if (companion_batch_.count() == 0) return false;
  companion_writer_.batch = &companion_batch_;
  companion_writer_.durability = Durability::Sync;
  companion_writer_.status = check_batch(companion_batch_);
  if (companion_writer_.status.ok()) {
    group_.insert(group_.begin(), &companion_writer_);
    return true;
  }
  companion->committed(companion_writer_.status);
  return false;
}

std::size_t EngineImpl::commit_run(std::size_t begin) {
  // prepare_for() made room for the first; the rest joins as long as the segment takes it.
  std::uint64_t bytes = 0;
  bool wants_sync = false;
  std::size_t end = begin;
  for (; end < group_.size(); ++end) {
    // Each record is rounded up and has a head of its own: counted as a file, it is never too low.
    bytes += log_file_bytes_for(group_[end]->batch->encoded_bytes(), keys_ != nullptr);
    if (end != begin && (!wal_->fits(bytes) || is_large(group_[end]->batch->size_bytes()))) break;
    if (end != begin && free_space_.is_short() && !check_free_space(*group_[end]->batch).ok())
      break;
    wants_sync = wants_sync || group_[end]->durability == Durability::Sync;
  }
  const auto draft = end - begin == 1 ? draft_of(*group_[begin]->batch) : std::nullopt;
  const Status logged = append_run(begin, end, wants_sync);
  if (draft && !logged.ok()) active_->discard(*draft);
  for (std::size_t i = begin; i < end; ++i) {
    CommitQueue::Writer& writer = *group_[i];
    writer.status = logged;
    if (!logged.ok() || writer.batch->count() == 0) continue;
    if (draft) {
      apply_draft(*draft);
    } else {
      WriteBatchReader entries(*writer.batch);
      apply_batch(last_sequence_ + 1, entries);
    }
    add_alone(batches_, 1);
    add_alone(entries_written_, writer.batch->count());
  }
  return end;
}

Status EngineImpl::append_run(std::size_t begin, std::size_t end, bool wants_sync) {
  Status logged = log_run(begin, end, wants_sync);
  if (logged.ok()) return logged;
  // The segment is given up; the run goes to a new one, whole.
  std::uint64_t bytes = 0;
  for (std::size_t i = begin; i < end; ++i)
    bytes += log_file_bytes_for(group_[i]->batch->encoded_bytes(), keys_ != nullptr);
  if (const Status replaced = start_segment(bytes); !replaced.ok()) {
    note_wal_failure(logged);
    return logged;
  }
  logged = log_run(begin, end, true);
  if (!logged.ok()) note_wal_failure(logged);
  return logged;
}

Status EngineImpl::log_run(std::size_t begin, std::size_t end, bool wants_sync) {
  if (const WriteBatch& batch = *group_[begin]->batch;
      end - begin == 1 && batch.count() > 0 && batch.borrowed().empty()) {
    const ByteView encoded = batch.encoded();
    EC_TRY(wal_->append(last_sequence_ + 1, last_sequence_ + batch.count(), {&encoded, 1}));
    return wants_sync ? sync_log() : ok();
  }
  // Small batches share a record, which is one call of the system for all of them.
  std::array<ByteView, kRecordBatchesMax> parts;
  std::size_t count = 0, bytes = 0;
  SequenceNumber first = last_sequence_ + 1, next = first;
  for (std::size_t i = begin; i < end; ++i) {
    const WriteBatch& batch = *group_[i]->batch;
    if (batch.count() == 0) continue;
    const bool is_full = count == parts.size() || bytes + batch.encoded_bytes() > kRecordMaxBytes;
    if (count > 0 && is_full) {
      EC_TRY(wal_->append(first, next - 1, std::span(parts).first(count)));
      first = next;
      count = bytes = 0;
    }
    next += batch.count();
    if (!batch.borrowed().empty()) {
      EC_TRY(wal_->append(first, next - 1, parts_of(batch)));
      first = next;
      continue;
    }
    parts[count++] = batch.encoded();
    bytes += batch.encoded_bytes();
  }
  if (count > 0) EC_TRY(wal_->append(first, next - 1, std::span(parts).first(count)));
  return wants_sync ? sync_log() : ok();
}

Status EngineImpl::sync_log() {
  const std::int64_t begin_ns = environment_.clock.boot_ns();
  const Status synced = wal_->sync();
  const std::int64_t end_ns = environment_.clock.boot_ns();
  synced_ns_ += end_ns - begin_ns;
  if (synced.ok()) {
    last_sync_ns_.store(end_ns, std::memory_order_relaxed);
    if (!rest_is_scheduled_.exchange(true)) schedule_rest(kRestNs);
  }
  return synced;
}

// Once nobody has written for a second; while somebody does, that is a look a second.
void EngineImpl::schedule_rest(std::int64_t delay_ns) {
  schedule_on_compaction(delay_ns, [this] {
    const std::int64_t since_ns =
        environment_.clock.boot_ns() - last_sync_ns_.load(std::memory_order_relaxed);
    if (since_ns >= kRestNs && commits_.try_lead()) {
      rest_is_scheduled_ = false;
      wal_->rest();
      commits_.leave();
    } else {
      schedule_rest(std::clamp<std::int64_t>(kRestNs - since_ns, kRestNs / 8, kRestNs));
    }
  });
}

// Of one put or delete that comes alone: while the log takes it, its place is on the way from
// memory.
std::optional<Memtable::Draft> EngineImpl::draft_of(const WriteBatch& batch) {
  if (batch.count() != 1 || batch.range_deletes() != 0 || !batch.borrowed().empty())
    return std::nullopt;
  const BatchEntry entry = batch.only_entry();
  if (codec_of(entry.namespace_id) != GroupCodec::Plain ||
      !Memtable::is_small(entry.key, entry.value))
    return std::nullopt;
  return active_->draft(entry.namespace_id, entry.key, entry.kind, entry.value);
}

void EngineImpl::apply_draft(const Memtable::Draft& draft) {
  static_cast<void>(log_expiry());  // may have new rules; such an entry expires never
  active_->add(draft, ++last_sequence_);
  add_alone(user_bytes_written_, draft.user_bytes);
}

void EngineImpl::apply_batch(SequenceNumber first, WriteBatchReader& entries) {
  std::uint64_t user_bytes = 0;
  SequenceNumber sequence = first;
  NamespaceId known = 0;
  GroupCodec codec = GroupCodec::Plain;
  const ExpiryView& expiry = log_expiry();
  std::int64_t expires_ns = kNeverNs;
  std::array<Memtable::Draft, kDraftsMax> drafts;
  std::size_t drafted = 0;
  const auto add_drafts = [&] {
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
      apply_range(*entry, sequence++);
      continue;
    }
    if (!expiry.empty() && codec == GroupCodec::Series)
      expires_ns = std::min(expires_ns, log_expiry_of(known, entry->key));
    active_->add(*entry, sequence++, codec);
  }
  add_drafts();
  EC_CHECK(entries.status().ok());
  if (!expiry.empty()) wal_->note_expiry(expires_ns);
  add_alone(user_bytes_written_, user_bytes);
  last_sequence_ = sequence - 1;
}

void EngineImpl::apply_range(const BatchEntry& entry, SequenceNumber sequence) {
  RangeDelete made = make_range_delete(entry.namespace_id, entry.key, entry.value, sequence);
  made.erases = entry.kind == EntryKind::EraseRange;
  if (made.erases) hide_for_good(made);
  active_->add_range_delete(std::move(made));
}

// An id is never used for another namespace.
GroupCodec EngineImpl::codec_of(NamespaceId id) {
  if (id < codecs_.size() && codecs_[id]) return *codecs_[id];
  const auto info = versions_->find_namespace(id);
  if (!info.ok()) return GroupCodec::Plain;
  if (id >= codecs_.size()) codecs_.resize(id + 1);
  codecs_[id] = info->options.codec;
  return info->options.codec;
}

// What brings room may use what is kept for it.
Status EngineImpl::prepare_for(const WriteBatch& batch, bool may_use_reserve) {
  if (free_space_.is_short()) EC_TRY(check_free_space(batch));
  Status prepared = make_room_for(batch);
  if (prepared.ok() || !may_use_reserve) return prepared;
  prepared = use_reserve(std::move(prepared), [&] {
    heal_not_before_ns_ = 0;
    return make_room_for(batch);
  });
  if (!prepared.ok()) fill_reserve();
  return prepared;
}

// A refusal holds until flushes succeed and the log is whole, whatever small batch still fits.
void EngineImpl::note_prepared(const Status& prepared) {
  if (prepared.code() == StatusCode::InvalidArgument) return;
  if (prepared.ok() && !refuses_.load(std::memory_order_relaxed)) return;
  MutexLock lock(mutex_);
  if (prepared.ok() && !(flush_failure_.ok() && wal_failure_.ok())) return;
  refused_ = prepared;
  refuses_.store(!prepared.ok(), std::memory_order_relaxed);
}

Status EngineImpl::make_room_for(const WriteBatch& batch) {
  EC_TRY(make_memtable_room());
  if (!wal_failing_.load(std::memory_order_acquire) && wal_->fits(batch.encoded_bytes())) {
    return ok();
  }
  return make_wal_room(batch.encoded_bytes());
}

Status EngineImpl::make_memtable_room() {
  if (active_->memory_bytes() < memtable_bytes() &&
      active_->range_delete_count() < kRangeDeletesPerMemtable)
    return ok();
  return rotate_memtable();
}

// A batch of which a memtable to itself is made, when those before it are in tables: memory has no
// room beside it.
bool EngineImpl::is_large(std::size_t batch_bytes) const {
  return batch_bytes >= std::max<std::uint64_t>(memtable_bytes(), CommitQueue::kGroupMaxBytes);
}

Status EngineImpl::empty_memtables() {
  EC_TRY(rotate_memtable());
  MutexLock lock(mutex_);
  while (!view_->immutables.empty()) EC_TRY(wait_for_flush(flushes_));
  return ok();
}

}  // namespace edgecase::engine
