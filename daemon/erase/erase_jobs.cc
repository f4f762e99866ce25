#include "erase/erase_jobs.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "edgecase/bytes.h"
#include "wire/reading.h"

namespace edgecase::erase {
namespace {

constexpr char kJobRecord = 'J';
// 1 was written in the batch of the certificate alone.
constexpr char kJobVersion = 2;
constexpr std::size_t kJobKeyBytes = 1 + 8 + 4;

Bytes job_prefix(std::uint64_t number) {
  Bytes key(1, kJobRecord);
  wire::append_big_endian(number, key);
  return key;
}

bool take_number(ByteView& bytes, std::uint32_t& number) {
  if (bytes.size() < 4) return false;
  number = static_cast<std::uint32_t>(wire::read_big_endian(bytes.substr(0, 4)));
  bytes.remove_prefix(4);
  return true;
}

bool take_bytes(ByteView& bytes, Bytes& taken) {
  std::uint32_t size = 0;
  if (!take_number(bytes, size) || size > bytes.size()) return false;
  taken = Bytes(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return true;
}

// version (1), then of each range: namespace id (4), and lower and upper, each with its length (4).
Bytes encode(const std::vector<catalog::KeySpan>& spans) {
  Bytes value(1, kJobVersion);
  for (const catalog::KeySpan& span : spans) {
    wire::append_big_endian(span.namespace_id, value, 4);
    for (const Bytes* bound : {&span.lower, &span.upper}) {
      wire::append_big_endian(bound->size(), value, 4);
      value += *bound;
    }
  }
  return value;
}

Result<std::vector<catalog::KeySpan>> decode(ByteView value) {
  if (value.empty()) return corruption("the record of an erasure is cut");
  if (value.front() < 1 || value.front() > kJobVersion)
    return unsupported("an erasure was written by a newer version of EdgeCase");
  value.remove_prefix(1);
  std::vector<catalog::KeySpan> spans;
  while (!value.empty()) {
    catalog::KeySpan& span = spans.emplace_back();
    if (!take_number(value, span.namespace_id) || !take_bytes(value, span.lower) ||
        !take_bytes(value, span.upper)) {
      return corruption("the record of an erasure is cut");
    }
  }
  return spans;
}

void append_range(const catalog::KeySpan& span, WriteBatch& batch) {
  batch.erase_range(span.namespace_id, span.lower, span.upper);
}

// A namespace that was dropped since has nothing left to erase.
void leave_out_dropped(const Engine& engine, std::vector<catalog::KeySpan>& spans) {
  const std::vector<NamespaceInfo> there = engine.namespaces();
  std::erase_if(spans, [&there](const catalog::KeySpan& span) {
    return std::none_of(there.begin(), there.end(), [&span](const NamespaceInfo& info) {
      return info.id == span.namespace_id;
    });
  });
}

// The first job behind `after`; an empty key: none.
Result<std::pair<Bytes, Bytes>> next_job(Engine& engine, NamespaceId records, const Bytes& after) {
  const catalog::KeySpan all = catalog::span_of_prefix(records, Bytes(1, kJobRecord));
  EC_ASSIGN_OR_RETURN(const auto iterator,
                      engine.scan(records, {after.empty() ? all.lower : after + '\0', all.upper},
                                  without_damaged()));
  EC_TRY(iterator->status());
  if (!iterator->valid()) return std::pair<Bytes, Bytes>();
  return std::pair(Bytes(iterator->key()), Bytes(iterator->value()));
}

Result<bool> counts(Engine& engine, NamespaceId records, ByteView key) {
  if (key.size() != kJobKeyBytes) return corruption("the record of an erasure has a wrong key");
  const std::uint64_t number = wire::read_big_endian(key.substr(1, 8));
  const Status found = engine.get(records, certificate_key(number), {}).status();
  if (found.code() == StatusCode::NotFound) return false;
  EC_TRY(found);
  return true;
}

}  // namespace

Status ErasureRanges::add(catalog::KeySpan span) {
  if (!spans_.empty()) {
    catalog::KeySpan& last = spans_.back();
    const bool touches = last.namespace_id == span.namespace_id && last.lower <= span.lower &&
                         (last.upper.empty() || span.lower <= last.upper);
    if (touches) {
      if (!last.upper.empty() && (span.upper.empty() || span.upper > last.upper))
        last.upper = std::move(span.upper);
      return ok();
    }
  }
  if (spans_.size() == kRangesPerJob) EC_TRY(write_ahead());
  spans_.push_back(std::move(span));
  ++count_;
  return ok();
}

// The range makes it a batch that erases, for which there is room on a full drive.
Status ErasureRanges::write_ahead() {
  WriteBatch batch;
  Bytes key = job_prefix(number_);
  wire::append_big_endian(jobs_, key, 4);
  append_range(catalog::span_of_key(records_, key), batch);
  batch.put(records_, key, encode(spans_));
  EC_TRY(engine_.write(batch, Durability::Async));
  ++jobs_;
  spans_.clear();
  return ok();
}

void ErasureRanges::append_to(WriteBatch& batch) const {
  for (const catalog::KeySpan& span : spans_) append_range(span, batch);
}

Status ErasureRanges::abandon() {
  if (jobs_ == 0) return ok();
  WriteBatch batch;
  append_range(catalog::span_of_prefix(records_, job_prefix(number_)), batch);
  return engine_.write(batch, Durability::Async);
}

namespace {

Status run_all(Engine& engine, NamespaceId records, bool is_start) {
  for (Bytes key;;) {
    EC_ASSIGN_OR_RETURN(const auto job, next_job(engine, records, key));
    if (job.first.empty()) return ok();
    key = job.first;
    EC_ASSIGN_OR_RETURN(const bool is_meant, counts(engine, records, key));
    if (!is_meant && !is_start) continue;
    WriteBatch batch;
    if (is_meant) {
      EC_ASSIGN_OR_RETURN(std::vector<catalog::KeySpan> spans, decode(job.second));
      leave_out_dropped(engine, spans);
      for (const catalog::KeySpan& span : spans) append_range(span, batch);
    }
    append_range(catalog::span_of_key(records, key), batch);
    EC_TRY(engine.write(batch, Durability::Sync));
  }
}

}  // namespace

// Whether a certificate that could not be made durable is there all the same is known at a start.
Status run_jobs(Engine& engine, NamespaceId records) {
  return run_all(engine, records, false);
}

Status resume_jobs(Engine& engine) {
  const auto found = engine.find_namespace(kErasuresNamespace);
  if (found.status().code() == StatusCode::NotFound) return ok();
  EC_TRY(found.status());
  return run_all(engine, found->id, true);
}

EraseWorker::EraseWorker(EraseService& service, observe::Logger& logger)
    : service_(service), logger_(logger) {
  service_.on_pending([this] {
    const MutexLock lock(mutex_);
    is_asked_ = true;
    changed_.notify_all();
  });
  is_asked_ = service_.has_pending();
  reach_ = service_.reach(service_.drives().last(), true);  // who starts the service says it
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "erase");
}

EraseWorker::~EraseWorker() {
  service_.end_waiting();
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void EraseWorker::run() {
  MutexLock lock(mutex_);
  std::int64_t pause_ns = kFirstPauseNs;
  while (!is_stopping_) {
    wait_for_work(kTakenBackPauseNs);
    if (is_stopping_) return;
    if (!is_asked_) {
      lock.unlock();
      // What fails is tried again by the next one.
      static_cast<void>(service_.forget_taken_back().ok());
      look_at_drives();
      lock.lock();
      continue;
    }
    is_asked_ = false;
    lock.unlock();
    const auto begun = std::chrono::steady_clock::now();
    const Status status = service_.drain();
    wipe_stack();
    tell(status);
    look_at_drives();
    if (status.ok()) {
      const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
      service_.rest(std::min<std::int64_t>(took.count(), kLongestRestNs));
      pause_ns = kFirstPauseNs;
      lock.lock();
      continue;
    }
    lock.lock();
    const bool away = status.code() == StatusCode::Unavailable;
    wait_for_work(away ? kAwayPauseNs : pause_ns);
    pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
    is_asked_ = true;
  }
}

void EraseWorker::wait_for_work(std::int64_t patience_ns) {
  const CondVar::Deadline deadline = CondVar::deadline_in(patience_ns);
  while (!is_asked_ && !is_stopping_ && changed_.wait_until(mutex_, deadline)) {
  }
}

// A drive may be mounted anew, and otherwise.
void EraseWorker::look_at_drives() {
  const Reach reach = service_.reach(service_.drives().last(), true);
  if (reach.why == reach_.why) return;
  if (reach.level == ErasureLevel::Physical) {
    logger_.info("erase", "erasures are physical: both drives overwrite in place");
  } else {
    logger_.warning("erase", warning_of(reach));
  }
  reach_ = reach;
}

void EraseWorker::tell(const Status& status) {
  if (status.ok()) {
    logger_.info("erase", "the bytes of what was erased are gone");
  } else {
    logger_.log_keyed(
        observe::LogLevel::Warning, "erase", "pending",
        "what was erased is invisible, its bytes are not gone yet: " + status.to_string());
  }
}

}  // namespace edgecase::erase
