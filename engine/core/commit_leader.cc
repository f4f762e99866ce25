#include "core/commit_leader.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/entry.h"
#include "core/wal.h"

namespace edgecase::engine {
namespace {

// The size of a WAL record that several batches share; a larger batch has a record to itself.
constexpr std::size_t kRecordMaxBytes = 16u << 10;
constexpr std::size_t kRecordBatchesMax = 32;

// The parts of a batch that borrows: it is larger than those that share a record.
std::vector<ByteView> pieces_of(const WriteBatch& batch) {
  static_assert(WriteBatch::kBorrowedMinBytes > kRecordMaxBytes);
  std::vector<ByteView> pieces;
  std::size_t begin = 0;
  for (const auto& [at, end] : batch.borrowed()) {
    pieces.push_back(batch.encoded().substr(begin, at - begin));
    pieces.push_back(end);
    begin = at;
  }
  pieces.push_back(batch.encoded().substr(begin));
  return pieces;
}

}  // namespace

Status CommitLeader::check_batch(const WriteBatch& batch) const {
  if (batch.over_limit())
    return invalid_argument("a key is over " + std::to_string(kKeySizeMaxBytes) +
                            " bytes or a value over " + std::to_string(kValueSizeMaxBytes));
  if (batch.size_bytes() > kBatchSizeMaxBytes)
    return invalid_argument("the batch has " + std::to_string(batch.size_bytes()) +
                            " bytes, more than " + std::to_string(kBatchSizeMaxBytes));
  for (const NamespaceId id : batch.namespaces()) EC_TRY(check_namespace(id));
  return batch.range_deletes() == 0 ? ok() : check_range_deletes(batch);
}

Status CommitLeader::check_range_deletes(const WriteBatch& batch) const {
  const std::size_t waiting = store_.versions.waiting_range_deletes();
  const std::size_t waiting_max = range_deletes_max(store_.options.memory_limit_bytes);
  if (batch.range_deletes() <= kRangeDeletesPerBatchMax && waiting < waiting_max) return ok();
  if (batch.range_deletes() > kRangeDeletesPerBatchMax)
    return invalid_argument("a batch has at most " + std::to_string(kRangeDeletesPerBatchMax) +
                            " range deletes");
  compactor_.wake();
  return busy(std::to_string(waiting) + " range deletes wait for merges, the most");
}

Status CommitLeader::check_namespace(NamespaceId id) const {
  if (store_.versions.has_namespace(id)) return ok();
  if (store_.versions.was_given_out(id))
    return invalid_argument("namespace " + std::to_string(id) + " was dropped");
  return invalid_argument("there is no namespace " + std::to_string(id));
}

Status CommitLeader::write(const WriteBatch& batch, Durability durability) {
  EC_TRY(check_batch(batch));
  if (batch.count() == 0 && companion_.load() == nullptr) return ok();
  CommitQueue::Writer writer;
  writer.batch = &batch;
  // A key that was destroyed does not return if a power cut takes the erasure back.
  const bool destroys = store_.keys != nullptr && batch.range_deletes() > 0;
  writer.durability = destroys ? Durability::Sync : durability;

  if (writer.durability != Durability::Sync && commits_.try_lead()) {
    commits_.group().push_back(&writer);
    commit_group();
    store_.views.show(memtable_.last_sequence());
    commits_.leave();
  } else if (commits_.wait_for_turn(writer)) {
    commit_group();
    store_.views.show(memtable_.last_sequence());
    commits_.finish(synced_ns_);
  }
  pacer_.keep(writer.answer_not_before_ns);
  // Where the log is durable up to there: a batch that a power cut may take is taken whole.
  const bool is_durable = writer.status.ok() && writer.durability == Durability::Sync;
  if (batch.range_deletes() > 0 && is_durable) name_erasures(writer.last);
  return std::move(writer.status);
}

// The manifest knows of an erasure before whoever asked for it is answered, and hides its range
// from then on: a part of the log that is lost afterwards takes no erasure along. Where the drive
// refuses the log alone knows, until a flush.
void CommitLeader::name_erasures(SequenceNumber through) {
  const SequenceNumber named = named_erasures_.load();
  VersionEdit edit;
  for (const RangeDelete& each : store_.views.erased_ranges())
    if (each.sequence > named && each.sequence <= through) edit.erasures.push_back(each);
  if (edit.erasures.empty()) return;
  if (store_.versions.apply(edit).ok()) named_erasures_ = std::max(named, through);
}

void CommitLeader::set_companion(CommitCompanion* companion) {
  lead([&] { companion_.store(companion); });
}

Status CommitLeader::flush() {
  Status rotated;
  SequenceNumber through = 0;
  lead([&]() EC_REQUIRES(leading) {
    rotated = memtable_.rotate();
    through = store_.views.visible();
  });
  EC_TRY(rotated);
  return flushes_.finish(through);
}

// Nobody else is there who could lead.
Result<std::uint64_t> CommitLeader::replay(SequenceNumber first, ByteView payload, bool may_wait) {
  const RoleScope leads(leading);
  EC_TRY(memtable_.make_room());
  if (may_wait && memtable_.is_large(payload.size())) EC_TRY(memtable_.empty());
  WriteBatchReader entries(payload);
  memtable_.apply(first, entries);
  return memtable_.last_sequence() - first + 1;
}

void CommitLeader::replay_erasure(const RangeDelete& erased) {
  const RoleScope leads(leading);
  memtable_.replay_erasure(erased);
}

void CommitLeader::end_replay() {
  const RoleScope leads(leading);
  store_.views.show(memtable_.last_sequence());
  is_replayed_ = true;
}

Status CommitLeader::turn_log(SequenceNumber through) {
  Status turned;
  lead([&]() EC_REQUIRES(leading) { turned = log_.turn(through); });
  return turned;
}

Status CommitLeader::try_turn_log(SequenceNumber through) {
  if (!is_replayed() || !commits_.try_lead()) return ok();
  const bool may_turn = store_.views.immutable_count() <= 1 && !store_.health.is_failing(Work::Log);
  const Status turned = may_turn ? log_.turn(through) : ok();
  commits_.leave();
  return turned;
}

void CommitLeader::add_to(Stats& stats) const {
  stats.user_bytes_written = user_bytes();
  stats.batches = batches_.load();
  stats.entries_written = entries_.load();
  stats.commit_groups = groups_.load();
}

void CommitLeader::commit_group() {
  add_alone(groups_, 1);
  synced_ns_ = 0;
  std::vector<CommitQueue::Writer*>& group = commits_.group();
  const bool accompanied = ask_companion();
  const bool makes_room = std::any_of(group.begin(), group.end(),
                                      [](const auto* each) { return each->batch->makes_room(); });
  for (std::size_t at = 0; at < group.size();) {
    const WriteBatch& batch = *group[at]->batch;
    // What is noted of an erasure comes with it, wherever there is room for that.
    const bool may_use_reserve = batch.makes_room() || (accompanied && at == 0 && makes_room);
    Status prepared = prepare_for(batch, may_use_reserve);
    store_.health.note_prepared(prepared);
    // Smaller ones are taken where this one is not.
    if (prepared.ok() && memtable_.is_large(batch.size_bytes())) prepared = memtable_.empty();
    if (!prepared.ok()) {
      group[at++]->status = prepared;
      continue;
    }
    at += commit_part(std::span(group).subspan(at));
  }
  if (accompanied) {
    group.erase(group.begin());
    companion_.load()->committed(companion_writer_.status);
  }
  pacer_.price(group, memtable_.active());
}

// True: what it adds is the first of the group now.
bool CommitLeader::ask_companion() {
  CommitCompanion* const companion = companion_.load();
  if (companion == nullptr) return false;
  companion_batch_.clear();
  companion->add_to(companion_batch_);
  if (companion_batch_.count() == 0) return false;
  companion_writer_.batch = &companion_batch_;
  companion_writer_.durability = Durability::Sync;
  companion_writer_.status = check_batch(companion_batch_);
  if (companion_writer_.status.ok()) {
    commits_.group().insert(commits_.group().begin(), &companion_writer_);
    return true;
  }
  companion->committed(companion_writer_.status);
  return false;
}

std::size_t CommitLeader::commit_part(Part rest) {
  // prepare_for() made room for the first; the rest joins as long as the segment takes it.
  const auto joins = [&](const WriteBatch& batch, std::uint64_t bytes) EC_REQUIRES(leading) {
    return store_.wal.fits(bytes) && !memtable_.is_large(batch.size_bytes()) &&
           (!room_.is_short() || room_.check(batch).ok());
  };
  std::uint64_t bytes = 0;
  bool wants_sync = false;
  std::size_t count = 0;
  for (; count < rest.size(); ++count) {
    bytes += log_bytes_of(*rest[count]->batch);
    if (count > 0 && !joins(*rest[count]->batch, bytes)) break;
    wants_sync = wants_sync || rest[count]->durability == Durability::Sync;
  }
  const Part part = rest.first(count);
  const auto draft = count == 1 ? memtable_.draft_of(*part[0]->batch) : std::nullopt;
  const Status logged = append_part(part, wants_sync);
  if (draft && !logged.ok()) memtable_.discard(*draft);
  for (CommitQueue::Writer* const writer : part) {
    writer->status = logged;
    if (!logged.ok() || writer->batch->count() == 0) continue;
    if (draft) {
      memtable_.apply(*draft);
    } else {
      WriteBatchReader entries(*writer->batch);
      memtable_.apply(memtable_.last_sequence() + 1, entries);
    }
    writer->last = memtable_.last_sequence();
    add_alone(batches_, 1);
    add_alone(entries_, writer->batch->count());
  }
  return count;
}

// Each record is rounded up and has a head of its own: counted as a file, it is never too low.
std::uint64_t CommitLeader::log_bytes_of(const WriteBatch& batch) const {
  return log_file_bytes_for(batch.encoded_bytes(), store_.keys != nullptr);
}

Status CommitLeader::append_part(Part part, bool wants_sync) {
  Status logged = log_part(part, wants_sync);
  if (logged.ok()) return logged;
  // The segment is given up; the part goes to a new one, whole.
  std::uint64_t bytes = 0;
  for (const CommitQueue::Writer* writer : part) bytes += log_bytes_of(*writer->batch);
  if (const Status replaced = log_.start_segment(bytes); !replaced.ok()) {
    log_.note_failure(logged);
    return logged;
  }
  logged = log_part(part, true);
  if (!logged.ok()) log_.note_failure(logged);
  return logged;
}

Status CommitLeader::log_part(Part part, bool wants_sync) {
  Wal& wal = store_.wal;
  SequenceNumber first = memtable_.last_sequence() + 1, next = first;
  if (const WriteBatch& batch = *part[0]->batch;
      part.size() == 1 && batch.count() > 0 && batch.borrowed().empty()) {
    const ByteView encoded = batch.encoded();
    EC_TRY(wal.append(first, first + batch.count() - 1, {&encoded, 1}));
    return wants_sync ? log_.sync(synced_ns_) : ok();
  }
  // Small batches share a record, which is one call of the system for all of them.
  std::array<ByteView, kRecordBatchesMax> pieces;
  std::size_t count = 0, bytes = 0;
  for (const CommitQueue::Writer* writer : part) {
    const WriteBatch& batch = *writer->batch;
    if (batch.count() == 0) continue;
    const bool is_full = count == pieces.size() || bytes + batch.encoded_bytes() > kRecordMaxBytes;
    if (count > 0 && is_full) {
      EC_TRY(wal.append(first, next - 1, std::span(pieces).first(count)));
      first = next;
      count = bytes = 0;
    }
    next += batch.count();
    if (!batch.borrowed().empty()) {
      EC_TRY(wal.append(first, next - 1, pieces_of(batch)));
      first = next;
      continue;
    }
    pieces[count++] = batch.encoded();
    bytes += batch.encoded_bytes();
  }
  if (count > 0) EC_TRY(wal.append(first, next - 1, std::span(pieces).first(count)));
  return wants_sync ? log_.sync(synced_ns_) : ok();
}

// What brings room may use what is kept for it.
Status CommitLeader::prepare_for(const WriteBatch& batch, bool may_use_reserve) {
  if (room_.is_short()) EC_TRY(room_.check(batch));
  Status prepared = make_room_for(batch);
  if (prepared.ok() || !may_use_reserve) return prepared;
  prepared = flushes_.with_reserve(std::move(prepared), [&]() EC_REQUIRES(leading) {
    log_.may_heal();
    return make_room_for(batch);
  });
  if (!prepared.ok()) room_.fill_reserve();
  return prepared;
}

Status CommitLeader::make_room_for(const WriteBatch& batch) {
  EC_TRY(memtable_.make_room());
  if (!store_.health.is_failing(Work::Log) && store_.wal.fits(batch.encoded_bytes())) return ok();
  return log_.make_room(batch.encoded_bytes());
}

}  // namespace edgecase::engine
