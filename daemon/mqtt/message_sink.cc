#include "mqtt/message_sink.h"

#include <algorithm>

namespace edgecase::mqtt {
namespace {

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

MessageSink::MessageSink(SinkParts parts)
    : parts_(std::move(parts)),
      actors_(actors_of(parts_.rules, parts_.source)),
      committer_({.pipeline = parts_.pipeline,
                  .rejected = parts_.rejected,
                  .clock = parts_.clock,
                  .logger = parts_.logger,
                  .thread_name = "mqtt-store",
                  .source = {auth::PrincipalKind::Mqtt, parts_.source},
                  .while_owed = WhileOwed::Hold},
                 [this] { on_committer(); }) {}

MessageSink::~MessageSink() {
  stop();
}

void MessageSink::stop() {
  {
    const MutexLock lock(take_mutex_);
    stopped_ = true;
  }
  committer_.stop();
}

void MessageSink::new_session() {
  const MutexLock lock(take_mutex_);
  repeats_.new_session();
}

void MessageSink::set_filters(const std::vector<std::string>& filters) {
  const MutexLock lock(take_mutex_);
  copies_.set_filters(filters);
}

bool MessageSink::has_overlaps() {
  const MutexLock lock(take_mutex_);
  return copies_.has_overlaps();
}

void MessageSink::new_connection() {
  const MutexLock lock(take_mutex_);
  copies_.new_connection();
}

SinkCounters MessageSink::counters() const {
  SinkCounters counters = committer_.counters();
  counters.lost_at_qos0 = lost_at_qos0_.load(std::memory_order_relaxed);
  return counters;
}

// A group is done, or the one that was full was taken.
void MessageSink::on_committer() {
  for (std::unique_ptr<MessageGroup>& group : committer_.take_done()) {
    durable_.fetch_add(group->messages().size(), std::memory_order_release);
    committer_.reuse(std::move(group));
  }
  full_.store(false, std::memory_order_relaxed);
  parts_.wake();
}

void MessageSink::take(std::span<const IncomingMessage> messages) {
  const MutexLock lock(take_mutex_);
  if (stopped_) {
    const auto lost = std::ranges::count(messages, 0, &IncomingMessage::qos);
    lost_at_qos0_.fetch_add(static_cast<std::uint64_t>(lost), std::memory_order_relaxed);
  } else {
    std::unique_ptr<MessageGroup> group = committer_.take();
    for (const IncomingMessage& message : messages) add(message, *group);
    if (group->full()) full_.store(true, std::memory_order_relaxed);
    committer_.offer(std::move(group));
  }
  // Refused ones leave a hole that durable() never passes.
  appended_.fetch_add(messages.size(), std::memory_order_release);
}

void MessageSink::add(const IncomingMessage& message, MessageGroup& group) {
  IncomingPublish publish;
  publish.topic = message.topic;
  publish.payload = message.payload;
  publish.packet_id = message.packet_id;
  publish.qos = static_cast<std::uint8_t>(message.qos);
  publish.duplicate = message.redelivered;
  publish.retained = message.retained;
  if (message.oversized_bytes != 0) {
    return group.add_oversized(publish, message.oversized_bytes, parts_.limits);
  }
  const bool again =
      (message.redelivered &&
       repeats_.is_redelivery(message.packet_id, message.topic, message.payload)) ||
      (message.retained && repeats_.is_retained_repeat(message.topic, message.payload)) ||
      (copies_.has_overlaps() && copies_.is_copy(message.topic, message.payload,
                                                 message.subscriptions, parts_.clock.boot_ns()));
  // The first one is in this group or in one before it, so both are durable together.
  if (again) return group.add_repeat(publish);
  const DecodeResult decoded =
      group.add(publish, parts_.rules, parts_.limits, parts_.pipeline, 0, parts_.names);
  const std::size_t number = decoded.rule == nullptr ? 0 : decoded.rule->number;
  group.messages().back().publisher = actors_[std::min(number, actors_.size() - 1)];
  if (decoded.outcome == DecodeOutcome::Readings) {
    repeats_.stored(message.packet_id, message.topic, message.payload);
  }
}

}  // namespace edgecase::mqtt
