#include "audit/audit_log.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "audit/page.h"
#include "edgecase/bytes.h"

namespace edgecase::audit {
namespace {

Status not_writable(const Status& why) {
  return unavailable("the audit log can not be written (audit.mode = \"strict\"): " +
                     why.to_string());
}

Record own_record(std::string_view operation, std::string detail) {
  Record record;
  record.operation = operation;
  record.actor = "daemon";
  record.detail = std::move(detail);
  return record;
}

std::string step_text(std::int64_t step_ns) {
  return (step_ns < 0 ? "" : "+") + std::to_string(step_ns / 1'000'000) + " ms";
}

}  // namespace

Record record_of(std::string_view operation, const auth::Principal& principal) {
  Record record;
  record.operation = operation;
  record.actor = principal.name;
  if (principal.grant) record.token = principal.grant->token_id;
  return record;
}

AuditLog::AuditLog(const AuditOptions& options, const AuditParts& parts)
    : options_(options), parts_(parts) {
  anchor_.sequence = 1;
  clock_offset_ns_ = parts_.clock.wall_ns() - parts_.clock.boot_ns();
  next_minute_ns_ = parts_.clock.boot_ns() + kCutSpacingNs;
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(const AuditOptions& options,
                                                 const AuditParts& parts) {
  std::unique_ptr<AuditLog> log(new AuditLog(options, parts));
  EC_TRY(log->load());
  if (!log->is_on()) return log;
  parts.engine.set_commit_companion(log.get());
  if (options.runs_thread) {
    log->thread_ = std::thread([raw = log.get()] { raw->run(); });
    pthread_setname_np(log->thread_.native_handle(), "audit");
  }
  return log;
}

AuditLog::~AuditLog() {
  stop();
}

void AuditLog::stop() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopping_, true) || !is_on()) return;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  Status status = flush();
  if (status.ok()) status = write_checkpoint();
  if (!status.ok()) report("write", status);
  clear_spare();
  write_head(HeadFile::Now);
  parts_.engine.set_commit_companion(nullptr);
}

std::uint64_t AuditLog::device_pseudonym(NamespaceId namespace_id, std::uint32_t device_id,
                                         std::string_view namespace_name, std::string_view device) {
  const std::uint64_t key = std::uint64_t{namespace_id} << 32 | device_id;
  {
    const MutexLock lock(pseudonyms_mutex_);
    if (const auto known = known_pseudonyms_.find(key); known != known_pseudonyms_.end()) {
      return known->second;
    }
  }
  const std::uint64_t pseudonym = names_->of_device(namespace_name, device);
  const MutexLock lock(pseudonyms_mutex_);
  if (known_pseudonyms_.size() >= kPseudonymsMax) known_pseudonyms_.clear();
  known_pseudonyms_.emplace(key, pseudonym);
  return pseudonym;
}

Result<Ticket> AuditLog::append(Record record) {
  return append(is_on() ? draft_of(record) : Draft());
}

Result<Ticket> AuditLog::append(Draft draft) {
  if (!is_on()) return Ticket();
  return append_drafts({&draft, 1});
}

Result<Ticket> AuditLog::append(std::vector<Draft> drafts) {
  if (!is_on() || drafts.empty()) return Ticket();
  return append_drafts(drafts);
}

Result<Ticket> AuditLog::append_drafts(std::span<Draft> drafts) {
  const MutexLock lock(mutex_);
  if (is_full() && !make_room()) {
    if (mode() == Mode::Strict) return busy("the queue of the audit log is full");
    lost_ += drafts.size();
    return Ticket();
  }
  return push_all(drafts);
}

Result<Ticket> AuditLog::append_urgent(Record record) {
  if (!is_on()) return Ticket();
  Draft draft = draft_of(record);
  const MutexLock lock(mutex_);
  if (is_full(kUrgentRecordsMax, SIZE_MAX)) return busy("the queue of the audit log is full");
  const Ticket ticket = push_all({&draft, 1});
  urgent_sequence_ = ticket.last;
  due_ = true;
  return ticket;
}

Ticket AuditLog::push_all(std::span<Draft> drafts) {
  for (Draft& draft : drafts) push(std::move(draft));
  if (is_due() && !due_) {
    due_ = true;
    changed_.notify_all();
  }
  return {last_sequence(), drafts.size()};
}

void AuditLog::amend(Ticket ticket, Record record, const Status& failure) {
  if (ticket.count == 0) return;
  const Outcome outcome = outcome_of(failure);
  {
    const MutexLock lock(mutex_);
    const std::uint64_t first = ticket.last - ticket.count + 1;
    if (first > std::max(durable_.sequence + in_flight_, spared_sequence_)) {
      for (std::uint64_t i = 0; i < ticket.count; ++i) {
        queue_[first + i - durable_.sequence - 1].draft.outcome = outcome;
      }
      return;
    }
  }
  record.outcome = outcome;
  record.detail = "of record " + std::to_string(ticket.last);
  // When this finds no room, the drive refuses, and the answer says so.
  static_cast<void>(append(std::move(record)).ok());
}

Status AuditLog::settle(Ticket ticket) {
  if (mode() != Mode::Strict || ticket.count == 0) return ok();
  const Status written = write_until(ticket.last);
  return written.ok() || spare_until(ticket.last) ? ok() : not_writable(written);
}

Status AuditLog::note(Record record) {
  EC_ASSIGN_OR_RETURN(const Ticket ticket, append(std::move(record)));
  return settle(ticket);
}

Status AuditLog::ready() const {
  if (mode() != Mode::Strict) return ok();
  bool has_spare = false;
  {
    const MutexLock file_lock(spare_mutex_);
    has_spare = spare_.has_value();
  }
  const MutexLock lock(mutex_);
  if (!failure_.ok() && !has_spare) return not_writable(failure_);
  return is_full() ? not_writable(busy("its queue is full")) : ok();
}

void AuditLog::note_denied(std::string_view operation, const auth::Principal& principal,
                           std::string_view namespace_name, std::string_view device) {
  Record record = record_of(operation, principal);
  record.outcome = Outcome::Denied;
  record.namespace_name = namespace_name;
  if (!device.empty()) record.targets = {{names_->of_device(namespace_name, device), 1}};
  // A full queue is counted: as lost, or in strict mode by refusing everything else.
  static_cast<void>(append(std::move(record)).ok());
}

void AuditLog::note_throttled() {
  const MutexLock lock(mutex_);
  ++throttled_;
}

AuditLog::State AuditLog::state() const {
  const MutexLock lock(mutex_);
  State state;
  state.sequence = durable_.sequence;
  state.hash = durable_.hash;
  state.first = anchor_.sequence;
  state.records = appended_;
  state.queued = queue_.size();
  state.failures = failures_;
  state.lost = lost_;
  state.failure = failure_;
  state.head_failure = head_failure_;
  return state;
}

bool AuditLog::is_full(std::size_t more_records, std::size_t bytes_max) const {
  return queue_.size() >= kQueueRecordsMax + more_records || queue_bytes_ >= bytes_max;
}

// A drive that refuses is asked again by the next tick, not by every record.
bool AuditLog::is_due() const {
  return failure_.ok() && (queue_.size() >= kDueRecords || queue_bytes_ >= kCommitBytesMax / 2);
}

// Batched: lets the caller wait for the queue to be written, for a while.
bool AuditLog::make_room() {
  if (mode() == Mode::Strict || !failure_.ok() || stopping_) return false;
  due_ = true;
  changed_.notify_all();
  const CondVar::Deadline deadline = CondVar::deadline_in(kBackPressureNs);
  while (is_full() && room_.wait_until(mutex_, deadline)) {
  }
  return !is_full();
}

void AuditLog::push(Draft draft) {
  draft.time_ns = parts_.clock.wall_ns();
  if (draft.time_ns < trust_at_ns_ || draft.time_ns - trust_at_ns_ >= kTrustNs) {
    trust_at_ns_ = draft.time_ns;
    trust_ = parts_.clock.trust();
  }
  draft.trust = trust_;
  enqueue(std::move(draft));
  ++appended_;
}

void AuditLog::enqueue(Draft draft) {
  const bool went_back = draft.time_ns < last_time_ns_ - kClockStepNs;
  last_time_ns_ = went_back ? draft.time_ns : std::max(last_time_ns_, draft.time_ns);
  queue_bytes_ += draft.memory_bytes();
  queue_.push_back({std::move(draft), went_back});
}

Status AuditLog::flush() {
  if (!is_on()) return ok();
  std::uint64_t last = 0;
  {
    const MutexLock lock(mutex_);
    last = last_sequence();
    due_ = true;
  }
  EC_TRY(parts_.engine.write(WriteBatch(), Durability::Sync));
  return write_until(last);
}

// Each commit takes along as much as it may, from the front of the queue.
Status AuditLog::write_until(std::uint64_t sequence) {
  MutexLock lock(mutex_);
  while (durable_.sequence < sequence) {
    const std::uint64_t before = durable_.sequence;
    due_ = true;
    lock.unlock();
    EC_TRY(parts_.engine.write(WriteBatch(), Durability::Sync));
    lock.lock();
    if (durable_.sequence == before) {
      return failure_.ok() ? io_error("no commit took the audit log along") : failure_;
    }
  }
  return ok();
}

// How many of the queue the commit takes along.
std::size_t AuditLog::take_waiting() {
  const MutexLock lock(mutex_);
  taken_.clear();
  if (queue_.empty() || (mode() == Mode::Batched && !due_)) return 0;
  due_ = false;
  in_flight_head_ = durable_;
  head_due_sequence_ = head_written_ + kHeadSpacing;
  std::size_t bytes = 0;
  for (const Waiting& waiting : queue_) {
    const bool is_urgent = durable_.sequence + taken_.size() < urgent_sequence_;
    if (bytes > kCommitBytesMax && !is_urgent) break;
    bytes += waiting.draft.memory_bytes();
    taken_.push_back(&waiting);
  }
  in_flight_ = taken_.size();
  return in_flight_;
}

// What is in flight stays as and where it is until committed(): no lock is needed to read it.
void AuditLog::add_to(WriteBatch& batch) {
  const std::size_t taken = take_waiting();
  for (std::size_t begin = 0; begin < taken;) {
    std::size_t bytes = 0, end = begin;
    do {
      bytes += taken_[end++]->draft.memory_bytes();
    } while (end < taken && end - begin < kPageRecordsMax && bytes < kPageBytesMax &&
             !taken_[end]->went_back);
    append_page(begin, end, batch);
    begin = end;
  }
  in_flight_has_head_ = taken > 0 && in_flight_head_.sequence >= head_due_sequence_;
  if (in_flight_has_head_) batch.put(records_, kHeadKey, encode_mark(in_flight_head_));
}

void AuditLog::append_page(std::size_t begin, std::size_t end, WriteBatch& batch) {
  std::vector<const Draft*> drafts;
  drafts.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) drafts.push_back(&taken_[i]->draft);
  if (taken_[begin]->went_back) batch.put(records_, step_key(in_flight_head_.sequence + 1), {});
  in_flight_head_.sequence += end - begin;
  const Bytes body = encode_page(drafts);
  in_flight_head_.hash = chain_hash(in_flight_head_.hash, in_flight_head_.sequence, body);
  const Bytes value = page_value(in_flight_head_.hash, body);
  batch.put(records_, page_key(in_flight_head_.sequence), value);
  in_flight_head_.bytes += value.size();
}

void AuditLog::committed(const Status& status) {
  const MutexLock lock(mutex_);
  const std::size_t taken = std::exchange(in_flight_, 0);
  failure_ = status;
  if (!status.ok()) {
    ++failures_;
    return;
  }
  for (std::size_t i = 0; i < taken; ++i) {
    queue_bytes_ -= queue_.front().draft.memory_bytes();
    queue_.pop_front();
  }
  durable_ = in_flight_head_;
  settled_sequence_.store(std::max(durable_.sequence, spared_sequence_), std::memory_order_release);
  if (in_flight_has_head_) head_written_ = durable_.sequence;
  if (mode() == Mode::Batched) room_.notify_all();
}

void AuditLog::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const CondVar::Deadline deadline = CondVar::deadline_in(kBatchedDelayNs);
    while (!stopping_ && (!due_ || queue_.empty() || !failure_.ok()) &&
           changed_.wait_until(mutex_, deadline)) {
    }
    lock.unlock();
    tick();
    wipe_stack<kWipedStackBytes / 4>();
    lock.lock();
  }
}

void AuditLog::tick() {
  watch_clock();
  const bool minute = parts_.clock.boot_ns() >= next_minute_ns_;
  if (minute) {
    next_minute_ns_ = parts_.clock.boot_ns() + kCutSpacingNs;
    note_unrecorded();
    make_spare();
  }
  if (state().queued > 0) {
    if (const Status written = flush(); !written.ok()) report("write", written);
  }
  clear_spare();
  write_head(HeadFile::IfDue);
  if (minute) cut();
}

void AuditLog::watch_clock() {
  const std::int64_t offset_ns = parts_.clock.wall_ns() - parts_.clock.boot_ns();
  const std::int64_t step_ns = offset_ns - std::exchange(clock_offset_ns_, offset_ns);
  if (step_ns > -kClockStepNs && step_ns < kClockStepNs) return;
  static_cast<void>(append(own_record("clock.step", step_text(step_ns))).ok());
}

// What was only counted.
void AuditLog::note_unrecorded() {
  const MutexLock lock(mutex_);
  if (is_full()) return;
  if (throttled_ > 0) {
    Record record = own_record("login.throttled", "");
    record.outcome = Outcome::Denied;
    record.count = std::exchange(throttled_, 0);
    push(draft_of(record));
  }
  if (lost_ > lost_told_) {
    Record record = own_record("audit.lost", "records that found the queue full");
    record.outcome = Outcome::Failed;
    record.count = lost_ - std::exchange(lost_told_, lost_);
    push(draft_of(record));
  }
}

Status AuditLog::write_checkpoint() {
  WriteBatch batch;
  {
    const MutexLock lock(mutex_);
    if (head_written_ == durable_.sequence) return ok();
    head_written_ = durable_.sequence;
    batch.put(records_, kHeadKey, encode_mark(durable_));
  }
  return parts_.engine.write(batch, Durability::Sync);
}

void AuditLog::write_head(HeadFile when) {
  Mark head;
  {
    const MutexLock lock(mutex_);
    head = durable_;
  }
  const std::int64_t now_ns = parts_.clock.boot_ns();
  const bool is_due = now_ns - head_file_at_ns_ >= kHeadFileNs ||
                      head.sequence - head_file_sequence_ >= kHeadFileSpacing;
  if (when == HeadFile::IfDue && (head.sequence == head_file_sequence_ || !is_due)) return;
  head_file_at_ns_ = now_ns;
  // Not into the directory that an unmounted drive leaves behind.
  Status written = parts_.engine.stats().values.degraded;
  if (written.ok()) written = write_head_file(parts_.file_system, options_.head_directory, head);
  if (written.ok()) {
    head_file_sequence_ = head.sequence;
  } else {
    report("write the head of", written);
  }
  const MutexLock lock(mutex_);
  if (!written.ok()) ++failures_;
  head_failure_ = written;
}

void AuditLog::report(const char* what, const Status& failure) {
  if (parts_.logger == nullptr) return;
  parts_.logger->log_keyed(
      observe::LogLevel::Warning, "audit", what,
      std::string("can not ") + what + " the audit log: " + failure.to_string());
}

}  // namespace edgecase::audit
