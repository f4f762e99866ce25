#include "mqtt/message_committer.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "edgecase/bytes.h"
#include "mqtt/topic_rule.h"

namespace edgecase::mqtt {
namespace {

constexpr std::int64_t kFirstPauseNs = 20'000'000;
constexpr std::int64_t kLongestPauseNs = 1'000'000'000;
constexpr int kSiftRoundsMax = 3;

ReasonCode reason_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::Busy:
    case StatusCode::LimitReached: return ReasonCode::QuotaExceeded;
    case StatusCode::NotAllowed: return ReasonCode::NotAuthorized;
    default: return ReasonCode::PayloadFormatInvalid;
  }
}

// An author that publishes many messages in a row is named once.
void add_author(const GroupMessage& message, std::size_t first_reading,
                std::vector<ingest::Author>& authors) {
  if (message.publisher.empty()) return;
  if (!authors.empty() && authors.back().name == message.publisher) return;
  authors.push_back({first_reading, message.publisher, message.token});
}

}  // namespace

bool may_succeed_later(const Status& status) {
  switch (status.code()) {
    case StatusCode::Busy:
    case StatusCode::OutOfSpace:
    case StatusCode::IoError:
    case StatusCode::Unavailable:
    case StatusCode::Locked:
    case StatusCode::Cancelled:
    case StatusCode::Corruption: return true;
    default: return false;
  }
}

MessageCommitter::MessageCommitter(CommitterParts parts, std::function<void()> wake)
    : parts_(std::move(parts)), wake_(std::move(wake)), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), parts_.thread_name);
}

MessageCommitter::~MessageCommitter() {
  stop();
}

void MessageCommitter::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<MessageGroup> MessageCommitter::take() {
  const MutexLock lock(mutex_);
  if (ready_) return std::move(ready_);
  if (spare_) return std::move(spare_);
  return std::make_unique<MessageGroup>();
}

void MessageCommitter::offer(std::unique_ptr<MessageGroup> group) {
  const MutexLock lock(mutex_);
  if (group->empty()) {
    spare_ = std::move(group);
    return;
  }
  full_ = group->full();
  ready_ = std::move(group);
  changed_.notify_all();
}

std::vector<std::unique_ptr<MessageGroup>> MessageCommitter::take_done() {
  const MutexLock lock(mutex_);
  return std::exchange(done_, {});
}

void MessageCommitter::reuse(std::unique_ptr<MessageGroup> group) {
  group->clear();
  const MutexLock lock(mutex_);
  if (!spare_) spare_ = std::move(group);
}

SinkCounters MessageCommitter::counters() const {
  const MutexLock lock(mutex_);
  return counters_;
}

void MessageCommitter::run() {
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && ready_ == nullptr) changed_.wait(mutex_);
    if (!ready_) return;
    std::unique_ptr<MessageGroup> group = std::move(ready_);
    const bool was_full = std::exchange(full_, false);
    lock.unlock();
    if (was_full) wake_();
    const bool stored = commit(*group);
    // Groups are done in their order and without a gap: whoever counts them relies on it.
    if (!stored) return;
    lock.lock();
    done_.push_back(std::move(group));
    lock.unlock();
    wake_();
    wipe_stack<kWipedStackBytes / 4>();
    lock.lock();
  }
}

// False: the drive refused until the end, and nothing of it may be acknowledged.
bool MessageCommitter::commit(MessageGroup& group) {
  // Once, however often the drive refuses: what was decided stays.
  const ingest::DeviceTimes::Replaced replaced = parts_.pipeline.times().settle(group.unsettled());
  group.note_replaced(replaced);
  if (!store(group)) return false;
  std::uint64_t readings = 0;
  for (const GroupMessage& message : group.messages()) readings += message.readings;
  {
    const SinkCounters& came = group.counters();
    const MutexLock lock(mutex_);
    counters_.messages += came.messages;
    counters_.redelivered += came.redelivered;
    counters_.repeats_dropped += came.repeats_dropped;
    counters_.ignored += came.ignored;
    counters_.skipped_values += came.skipped_values;
    counters_.times_unbelievable += came.times_unbelievable;
    counters_.times_repeated += came.times_repeated;
    counters_.times_stale += came.times_stale;
    counters_.readings += readings;
  }
  if (!keep_rejected(group)) return false;
  note_owed(group);
  return true;
}

// What is stored stays stored, and is acknowledged, when the committer stops meanwhile.
void MessageCommitter::note_owed(MessageGroup& group) {
  if (!parts_.pipeline.rates().is_on()) return;
  std::int64_t longest_ns = 0;
  for (GroupMessage& message : group.messages()) {
    if (message.readings == 0) continue;
    message.owed_ns = parts_.pipeline.owed_ns(group.batch().readings[message.first_reading]);
    longest_ns = std::max(longest_ns, message.owed_ns);
  }
  if (longest_ns == 0) return;
  parts_.pipeline.rates().count_wait();
  if (parts_.while_owed == WhileOwed::Tell) return;
  const std::string why = "a device is over limits.device-rate = " +
                          std::to_string(parts_.pipeline.rates().limits().per_second) +
                          " readings a second";
  if (parts_.logger != nullptr) {
    parts_.logger->log_keyed(observe::LogLevel::Warning, "mqtt", "device-rate",
                             why + ": acknowledgements wait");
  }
  wait(why, parts_.clock.boot_ns(), longest_ns);
  const MutexLock lock(mutex_);
  counters_.waiting_since_ns = 0;
  counters_.waiting_for.clear();
}

bool MessageCommitter::store(MessageGroup& group) {
  std::vector<ingest::Author> authors;
  for (const GroupMessage& message : group.messages()) {
    if (message.readings > 0) add_author(message, message.first_reading, authors);
  }
  std::vector<ingest::RecordChange> records = group.stored_records();
  Status status = persist([&] { return hand_over(group.batch(), authors, records); });
  // Once is enough, unless a namespace is dropped at that moment.
  for (int round = 0; round < kSiftRoundsMax && !status.ok(); ++round) {
    if (may_succeed_later(status)) return false;
    sift(group);
    wire::ReadingBatch good;
    authors.clear();
    for (const GroupMessage& message : group.messages()) {
      if (message.readings > 0) add_author(message, good.readings.size(), authors);
      const auto first = group.batch().readings.begin() + message.first_reading;
      good.readings.insert(good.readings.end(), first, first + message.readings);
    }
    records = group.stored_records();
    status = persist([&] { return hand_over(good, authors, records); });
  }
  if (status.ok()) return true;
  if (may_succeed_later(status)) return false;
  for (GroupMessage& message : group.messages()) {
    if (message.readings > 0) reject(group, message, status);
  }
  records = group.stored_records();
  return persist([&] { return hand_over({}, {}, records); }).ok();
}

// Takes out of the group what can never be stored. A message of which nothing is left is rejected.
void MessageCommitter::sift(MessageGroup& group) {
  std::vector<wire::Reading>& readings = group.batch().readings;
  std::vector<Status> why(readings.size());
  std::vector<wire::Reading> asked;
  std::vector<std::size_t> places;
  for (const GroupMessage& message : group.messages()) {
    for (std::size_t i = message.first_reading; i < message.first_reading + message.readings; ++i) {
      why[i] = auth::authorize_write(parts_.source, readings[i]);
      if (!why[i].ok()) continue;
      asked.push_back(readings[i]);
      places.push_back(i);
    }
  }
  for (catalog::Refusal& each : parts_.pipeline.unfit(asked))
    why[places[each.reading]] = std::move(each.why);
  for (GroupMessage& message : group.messages()) {
    const std::uint32_t begin = message.first_reading, end = begin + message.readings;
    std::uint32_t kept = begin;
    const Status* first = nullptr;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (!why[i].ok()) {
        parts_.pipeline.note_refused(readings[i]);
        if (first == nullptr) first = &why[i];
      } else if (kept++ != i) {
        readings[kept - 1] = readings[i];
      }
    }
    if (first == nullptr) continue;
    message.readings = kept - begin;
    if (message.readings == 0) {
      reject(group, message, *first);
    } else {
      std::string text = std::to_string(end - kept) + " of its readings: " + first->message();
      if (!message.left_out.empty()) text = std::string(message.left_out) + "; " + text;
      message.left_out = group.batch().keep(text);
    }
  }
}

void MessageCommitter::reject(MessageGroup& group, GroupMessage& message, const Status& status) {
  message.readings = 0;
  message.content_hash = 0;
  message.reason = reason_of(status);
  message.reason_text = group.batch().keep(status.message());
}

bool MessageCommitter::keep_rejected(MessageGroup& group) {
  std::vector<RejectedMessage> rejected;
  for (const GroupMessage& message : group.messages()) {
    if (message.purpose != Purpose::Publish) continue;
    if (message.reason != ReasonCode::Success) {
      rejected.push_back({message.topic, message.reason_text, message.payload});
    } else if (!message.left_out.empty()) {
      rejected.push_back({message.topic, message.left_out, message.payload});
    }
  }
  if (rejected.empty()) return true;
  if (parts_.logger != nullptr) {
    const RejectedMessage& first = rejected.front();
    std::string line = "rejected a message of topic " + std::string(first.topic) + ": " +
                       std::string(first.reason);
    if (first.reason == kNoRuleReason)
      line += "; edgecase mqtt test TOPIC PAYLOAD shows one that would";
    parts_.logger->log_keyed(observe::LogLevel::Warning, "mqtt", "rejected", line);
  }
  const std::vector<ingest::RecordChange> records = group.rejected_records();
  const Status status = persist([&] { return parts_.rejected.keep(rejected, records); });
  if (!status.ok() && may_succeed_later(status)) return false;
  const MutexLock lock(mutex_);
  (status.ok() ? counters_.rejected : counters_.rejected_lost) += rejected.size();
  return true;
}

Status MessageCommitter::hand_over(const wire::ReadingBatch& batch,
                                   std::span<const ingest::Author> authors,
                                   std::span<const ingest::RecordChange> records) {
  EC_ASSIGN_OR_RETURN(const auth::AuthorizedBatch authorized,
                      auth::authorize_write(parts_.source, batch));
  return parts_.pipeline.ingest(authorized, nullptr, authors, records);
}

// Tries until it works, cannot work, or the committer stops.
template <typename Attempt>
Status MessageCommitter::persist(Attempt attempt) {
  Status status = attempt();
  if (status.ok() || !may_succeed_later(status)) return status;
  const std::int64_t since_ns = parts_.clock.boot_ns();
  std::int64_t pause_ns = kFirstPauseNs;
  while (!status.ok() && may_succeed_later(status) &&
         wait_before_retry(status, since_ns, pause_ns)) {
    pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
    status = attempt();
  }
  const MutexLock lock(mutex_);
  counters_.waiting_since_ns = 0;
  counters_.waiting_for.clear();
  return status;
}

bool MessageCommitter::wait_before_retry(const Status& status, std::int64_t since_ns,
                                         std::int64_t pause_ns) {
  if (parts_.logger != nullptr) {
    parts_.logger->log_keyed(
        observe::LogLevel::Warning, "mqtt", "waiting",
        "not acknowledged, since nothing can be stored: " + status.to_string());
  }
  return wait(status.to_string(), since_ns, pause_ns);
}

// False: the committer stops.
bool MessageCommitter::wait(const std::string& why, std::int64_t since_ns, std::int64_t pause_ns) {
  const MutexLock lock(mutex_);
  counters_.waiting_since_ns = since_ns;
  counters_.waiting_for = why;
  const CondVar::Deadline deadline = CondVar::deadline_in(pause_ns);
  while (!stopping_ && changed_.wait_until(mutex_, deadline)) {
  }
  return !stopping_;
}

}  // namespace edgecase::mqtt
