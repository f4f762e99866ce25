#include "mqtt/message_sink.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

namespace edgecase::mqtt {
namespace {

constexpr std::int64_t kFirstPauseNs = 20'000'000;
constexpr std::int64_t kLongestPauseNs = 1'000'000'000;

// By their number. A topic may hold the names of devices, so it is not told.
std::vector<std::string> actors_of(const std::vector<TopicRule>& rules, const std::string& source) {
  std::vector<std::string> actors(1, source);
  for (const TopicRule& rule : rules) {
    actors.resize(std::max(actors.size(), rule.number + 1));
    actors[rule.number] = source + " rule " + std::to_string(rule.number);
  }
  return actors;
}

}  // namespace

bool may_succeed_later(const Status& status) {
  switch (status.code()) {
    case StatusCode::Busy:
      // The catalog's limits stay reached: waiting would stop every other message.
      return status.message().find("limits.") == std::string::npos;
    case StatusCode::OutOfSpace:
    case StatusCode::IoError:
    case StatusCode::Unavailable:
    case StatusCode::Locked:
    case StatusCode::Cancelled:
    case StatusCode::Corruption: return true;
    default: return false;
  }
}

MessageSink::MessageSink(const std::vector<TopicRule>& rules, const config::LimitSettings& limits,
                         ingest::IngestPipeline& pipeline, RejectedMessages& rejected, Clock& clock,
                         observe::Logger* logger, std::int64_t hold_ns, const std::string& source)
    : rules_(rules),
      limits_(limits),
      pipeline_(pipeline),
      rejected_(rejected),
      clock_(clock),
      logger_(logger),
      hold_ns_(hold_ns),
      source_{auth::PrincipalKind::Mqtt, source},
      actors_(actors_of(rules, source)),
      gathered_(std::make_unique<Gathered>()),
      gatherer_([this] { store_gathered(); }) {
  pthread_setname_np(gatherer_.native_handle(), "mqtt-store");
}

MessageSink::~MessageSink() {
  interrupt();
  gatherer_.join();
}

void MessageSink::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

void MessageSink::new_session() {
  repeats_.new_session();
}

SinkCounters MessageSink::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void MessageSink::count(std::uint64_t SinkCounters::*counter, std::uint64_t by) {
  const std::lock_guard lock(mutex_);
  counters_.*counter += by;
}

Delivery MessageSink::deliver(const IncomingMessage& message) {
  count(&SinkCounters::messages);
  if (message.redelivered) count(&SinkCounters::redelivered);
  if (message.qos == 0 && !message.retained) {
    gather(message);
    return Delivery::Acknowledge;
  }
  wire::ReadingBatch batch;
  const DecodeResult decoded =
      decode_message(rules_, limits_, message.topic, message.payload, batch);
  if (decoded.skipped > 0) count(&SinkCounters::skipped_values, decoded.skipped);
  if (decoded.outcome == DecodeOutcome::Ignored) {
    count(&SinkCounters::ignored);
    return Delivery::Acknowledge;
  }
  if (!decoded.has_time) {
    const bool again =
        (message.redelivered &&
         repeats_.is_redelivery(message.packet_id, message.topic, message.payload)) ||
        (message.retained && repeats_.is_retained_repeat(message.topic, message.payload));
    if (again) {
      count(&SinkCounters::repeats_dropped);
      return Delivery::Acknowledge;
    }
  }
  const Delivery delivery = store(message, decoded, batch);
  if (delivery == Delivery::Withhold) {
    count(message.qos > 0 ? &SinkCounters::withheld : &SinkCounters::lost_at_qos0);
  } else if (!decoded.has_time) {
    repeats_.stored(message.packet_id, message.topic, message.payload);
  }
  return delivery;
}

Delivery MessageSink::store(const IncomingMessage& message, const DecodeResult& decoded,
                            const wire::ReadingBatch& batch) {
  if (decoded.outcome == DecodeOutcome::Rejected) return reject(message, decoded.reason);
  const ingest::Author author = author_of(decoded, 0);
  const Status status = persist([&] { return ingest(batch, {&author, 1}); });
  if (status.ok()) {
    count(&SinkCounters::readings, batch.readings.size());
    return Delivery::Acknowledge;
  }
  if (may_succeed_later(status)) return Delivery::Withhold;
  return reject(message, status.message());
}

Delivery MessageSink::reject(const IncomingMessage& message, const std::string& reason) {
  if (logger_ != nullptr) {
    logger_->log_keyed(observe::LogLevel::Warning, "mqtt", "rejected",
                       "rejected a message of topic " + std::string(message.topic) + ": " + reason);
  }
  const RejectedMessage kept{message.topic, reason, message.payload};
  const Status status = persist([&] { return rejected_.keep({&kept, 1}); });
  if (!status.ok() && may_succeed_later(status)) return Delivery::Withhold;
  count(status.ok() ? &SinkCounters::rejected : &SinkCounters::rejected_lost);
  return Delivery::Acknowledge;
}

Status MessageSink::ingest(const wire::ReadingBatch& batch,
                           std::span<const ingest::Author> authors) {
  EC_ASSIGN_OR_RETURN(const auth::AuthorizedBatch authorized,
                      auth::authorize_write(source_, batch));
  return pipeline_.ingest(authorized, nullptr, authors);
}

ingest::Author MessageSink::author_of(const DecodeResult& decoded,
                                      std::size_t first_reading) const {
  const std::size_t number = decoded.rule == nullptr ? 0 : decoded.rule->number;
  return {first_reading, actors_[std::min(number, actors_.size() - 1)], {}};
}

// Tries until it works, cannot work, or the time is up.
template <typename Attempt>
Status MessageSink::persist(Attempt attempt) {
  Status status = attempt();
  if (status.ok() || !may_succeed_later(status)) return status;
  const std::int64_t since_ns = clock_.boot_ns();
  std::int64_t pause_ns = kFirstPauseNs;
  while (!status.ok() && may_succeed_later(status) &&
         wait_before_retry(status, since_ns, pause_ns)) {
    pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
    status = attempt();
  }
  const std::lock_guard lock(mutex_);
  counters_.waiting_since_ns = 0;
  counters_.waiting_for.clear();
  return status;
}

// False when it is time to give up.
bool MessageSink::wait_before_retry(const Status& status, std::int64_t since_ns,
                                    std::int64_t pause_ns) {
  if (logger_ != nullptr) {
    logger_->log_keyed(observe::LogLevel::Warning, "mqtt", "waiting",
                       "not acknowledged, since nothing can be stored: " + status.to_string());
  }
  std::unique_lock lock(mutex_);
  counters_.waiting_since_ns = since_ns;
  counters_.waiting_for = status.to_string();
  if (interrupted_ || clock_.boot_ns() - since_ns + pause_ns > hold_ns_) return false;
  changed_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [this] { return interrupted_; });
  return !interrupted_;
}

void MessageSink::gather(const IncomingMessage& message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] {
    return interrupted_ || (gathered_->bytes < kGatheredBytesMax &&
                            gathered_->batch.readings.size() < kGatheredReadingsMax);
  });
  if (interrupted_) {
    ++counters_.lost_at_qos0;
    return;
  }
  // Readings borrow from the message, which does not outlive this call.
  wire::ReadingBatch& batch = gathered_->batch;
  const std::string_view payload = batch.keep(message.payload);
  const std::size_t first_reading = batch.readings.size();
  const DecodeResult decoded = decode_message(rules_, limits_, message.topic, payload, batch);
  counters_.skipped_values += decoded.skipped;
  if (decoded.outcome == DecodeOutcome::Ignored) ++counters_.ignored;
  if (batch.readings.size() > first_reading) {
    const ingest::Author author = author_of(decoded, first_reading);
    std::vector<ingest::Author>& authors = gathered_->authors;
    if (authors.empty() || authors.back().name != author.name) authors.push_back(author);
  }
  gathered_->bytes += payload.size() + message.topic.size();
  changed_.notify_all();
  lock.unlock();
  if (!decoded.has_time) repeats_.stored(0, message.topic, message.payload);
  if (decoded.outcome != DecodeOutcome::Rejected) return;
  if (reject(message, decoded.reason) == Delivery::Withhold) count(&SinkCounters::lost_at_qos0);
}

void MessageSink::store_gathered() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return interrupted_ || !gathered_->batch.readings.empty(); });
    if (gathered_->batch.readings.empty()) return;
    const std::unique_ptr<Gathered> taken = std::move(gathered_);
    gathered_ = std::make_unique<Gathered>();
    changed_.notify_all();
    lock.unlock();
    Status status = persist([&] { return ingest(taken->batch, taken->authors); });
    std::uint64_t stored = status.ok() ? taken->batch.readings.size() : 0;
    std::uint64_t lost = status.ok() ? 0 : taken->batch.readings.size();
    if (!status.ok() && !may_succeed_later(status)) {
      // One reading that cannot be stored must not take the others with it.
      for (const wire::Reading& reading : taken->batch.readings) {
        wire::ReadingBatch one;
        one.readings.push_back(reading);
        status = persist([&] { return ingest(one, {}); });
        if (!status.ok()) continue;
        ++stored;
        --lost;
      }
    }
    if (lost > 0 && logger_ != nullptr) {
      logger_->log_keyed(observe::LogLevel::Warning, "mqtt", "lost",
                         "readings of QoS 0 messages could not be stored: " + status.to_string());
    }
    lock.lock();
    counters_.readings += stored;
    counters_.lost_at_qos0 += lost;
  }
}

}  // namespace edgecase::mqtt
