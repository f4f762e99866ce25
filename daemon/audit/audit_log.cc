#include "audit/audit_log.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "audit/head_file.h"

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
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true) || !is_on()) return;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  Status status = flush();
  if (status.ok()) status = write_checkpoint();
  if (!status.ok()) report("write", status);
  write_head(HeadFile::Now);
  parts_.engine.set_commit_companion(nullptr);
}

std::uint64_t AuditLog::device_pseudonym(NamespaceId namespace_id, std::uint32_t device_id,
                                         std::string_view namespace_name, std::string_view device) {
  const std::uint64_t key = std::uint64_t{namespace_id} << 32 | device_id;
  {
    const std::lock_guard lock(pseudonyms_mutex_);
    if (const auto known = known_pseudonyms_.find(key); known != known_pseudonyms_.end()) {
      return known->second;
    }
  }
  const std::uint64_t pseudonym = pseudonyms_->of_device(namespace_name, device);
  const std::lock_guard lock(pseudonyms_mutex_);
  if (known_pseudonyms_.size() >= kPseudonymsMax) known_pseudonyms_.clear();
  known_pseudonyms_.emplace(key, pseudonym);
  return pseudonym;
}

Result<Ticket> AuditLog::append(Record record) {
  std::vector<Record> records;
  records.push_back(std::move(record));
  return append(std::move(records));
}

Result<Ticket> AuditLog::append(std::vector<Record> records) {
  if (!is_on() || records.empty()) return Ticket();
  std::unique_lock lock(mutex_);
  if (is_full() && !make_room(lock)) {
    if (mode() == Mode::Strict) return busy("the queue of the audit log is full");
    lost_ += records.size();
    return Ticket();
  }
  for (Record& record : records) push(record);
  if (is_due()) {
    due_ = true;
    changed_.notify_all();
  }
  return Ticket{last_sequence(), records.size()};
}

void AuditLog::amend(Ticket ticket, Record record, const Status& failure) {
  if (ticket.count == 0) return;
  const Outcome outcome = outcome_of(failure);
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t first = ticket.last - ticket.count + 1;
    if (first > durable_.sequence + in_flight_) {
      for (std::uint64_t i = 0; i < ticket.count; ++i) {
        set_outcome(queue_[first + i - durable_.sequence - 1].body, outcome);
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
  return written.ok() ? ok() : not_writable(written);
}

Status AuditLog::note(Record record) {
  EC_ASSIGN_OR_RETURN(const Ticket ticket, append(std::move(record)));
  return settle(ticket);
}

Status AuditLog::ready() const {
  if (mode() != Mode::Strict) return ok();
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return not_writable(failure_);
  return is_full() ? not_writable(busy("its queue is full")) : ok();
}

void AuditLog::note_denied(std::string_view operation, const auth::Principal& principal,
                           std::string_view namespace_name, std::string_view device) {
  Record record = record_of(operation, principal);
  record.outcome = Outcome::Denied;
  record.namespace_name = namespace_name;
  if (!device.empty()) record.targets = {{pseudonyms_->of_device(namespace_name, device), 1}};
  // A full queue is counted: as lost, or in strict mode by refusing everything else.
  static_cast<void>(append(std::move(record)).ok());
}

void AuditLog::note_throttled() {
  const std::lock_guard lock(mutex_);
  ++throttled_;
}

AuditLog::State AuditLog::state() const {
  const std::lock_guard lock(mutex_);
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

bool AuditLog::is_full() const {
  return queue_.size() >= kQueueRecordsMax || queue_bytes_ >= kQueueBytesMax;
}

// A drive that refuses is asked again by the next tick, not by every record.
bool AuditLog::is_due() const {
  return failure_.ok() && (queue_.size() >= kDueRecords || queue_bytes_ >= kCommitBytesMax / 2);
}

// Batched: lets the caller wait for the queue to be written, for a while.
bool AuditLog::make_room(std::unique_lock<std::mutex>& lock) {
  if (mode() == Mode::Strict || !failure_.ok() || stopping_) return false;
  due_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, std::chrono::nanoseconds(kBackPressureNs),
                           [this] { return !is_full(); });
}

void AuditLog::push(Record& record) {
  record.time_ns = parts_.clock.wall_ns();
  record.trust = parts_.clock.trust();
  Waiting& waiting = queue_.emplace_back();
  waiting.body = encode_body(record);
  waiting.went_back = record.time_ns < last_time_ns_ - kClockStepNs;
  last_time_ns_ = waiting.went_back ? record.time_ns : std::max(last_time_ns_, record.time_ns);
  queue_bytes_ += waiting.body.size();
  ++appended_;
}

Status AuditLog::flush() {
  if (!is_on()) return ok();
  std::uint64_t last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = last_sequence();
    due_ = true;
  }
  EC_TRY(parts_.engine.write(WriteBatch(), Durability::Sync));
  return write_until(last);
}

// Each commit takes along as much as it may, from the front of the queue.
Status AuditLog::write_until(std::uint64_t sequence) {
  std::unique_lock lock(mutex_);
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

void AuditLog::add_to(WriteBatch& batch) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty() || (mode() == Mode::Batched && !due_)) return;
  due_ = false;
  in_flight_head_ = durable_;
  for (const Waiting& waiting : queue_) {
    if (batch.size_bytes() > kCommitBytesMax) break;
    const std::uint64_t sequence = ++in_flight_head_.sequence;
    in_flight_head_.hash = chain_hash(in_flight_head_.hash, sequence, waiting.body);
    const Bytes value = record_value(in_flight_head_.hash, waiting.body);
    batch.put(records_, record_key(sequence), value);
    if (waiting.went_back) batch.put(records_, step_key(sequence), {});
    in_flight_head_.bytes += value.size();
    ++in_flight_;
  }
  in_flight_has_head_ = in_flight_head_.sequence >= head_written_ + kHeadSpacing;
  if (in_flight_has_head_) batch.put(records_, kHeadKey, encode_mark(in_flight_head_));
}

void AuditLog::committed(const Status& status) {
  const std::lock_guard lock(mutex_);
  const std::size_t taken = std::exchange(in_flight_, 0);
  failure_ = status;
  if (!status.ok()) {
    ++failures_;
    return;
  }
  for (std::size_t i = 0; i < taken; ++i) {
    queue_bytes_ -= queue_.front().body.size();
    queue_.pop_front();
  }
  durable_ = in_flight_head_;
  if (in_flight_has_head_) head_written_ = durable_.sequence;
  changed_.notify_all();
}

void AuditLog::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, std::chrono::nanoseconds(kBatchedDelayNs),
                      [this] { return stopping_ || (due_ && !queue_.empty() && failure_.ok()); });
    lock.unlock();
    tick();
    lock.lock();
  }
}

void AuditLog::tick() {
  watch_clock();
  const bool minute = parts_.clock.boot_ns() >= next_minute_ns_;
  if (minute) {
    next_minute_ns_ = parts_.clock.boot_ns() + kCutSpacingNs;
    note_unrecorded();
  }
  if (state().queued > 0) {
    if (const Status written = flush(); !written.ok()) report("write", written);
  }
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
  const std::lock_guard lock(mutex_);
  if (is_full()) return;
  if (throttled_ > 0) {
    Record record = own_record("login.throttled", "");
    record.outcome = Outcome::Denied;
    record.count = std::exchange(throttled_, 0);
    push(record);
  }
  if (lost_ > lost_told_) {
    Record record = own_record("audit.lost", "records that found the queue full");
    record.outcome = Outcome::Failed;
    record.count = lost_ - std::exchange(lost_told_, lost_);
    push(record);
  }
}

Status AuditLog::write_checkpoint() {
  WriteBatch batch;
  {
    const std::lock_guard lock(mutex_);
    if (head_written_ == durable_.sequence) return ok();
    head_written_ = durable_.sequence;
    batch.put(records_, kHeadKey, encode_mark(durable_));
  }
  return parts_.engine.write(batch, Durability::Sync);
}

void AuditLog::write_head(HeadFile when) {
  Mark head;
  {
    const std::lock_guard lock(mutex_);
    head = durable_;
  }
  const std::int64_t now_ns = parts_.clock.boot_ns();
  const bool is_due = now_ns - head_file_at_ns_ >= kHeadFileNs ||
                      head.sequence - head_file_sequence_ >= kHeadFileSpacing;
  if (when == HeadFile::IfDue && (head.sequence == head_file_sequence_ || !is_due)) return;
  head_file_at_ns_ = now_ns;
  const Status written = write_head_file(parts_.file_system, options_.head_directory, head);
  if (written.ok()) {
    head_file_sequence_ = head.sequence;
  } else {
    report("write the head of", written);
  }
  const std::lock_guard lock(mutex_);
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
