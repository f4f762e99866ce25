#include "mqtt/message_group.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::mqtt {
namespace {

// What a reading takes beside its texts: itself, and its names in the batch.
constexpr std::size_t kReadingBytes = sizeof(wire::Reading) + 32;
// Topic, packet id, properties and their lengths, beside the payload.
constexpr std::uint64_t kAroundPayloadBytes = kTopicMaxBytes + (4u << 10);

// Whether a message brings a series more than once, as records of their own times do: each gets
// another nanosecond.
class SeriesSeen {
 public:
  // How many of `before` are of the series of `reading`; those that were not asked about count too.
  std::int64_t count(const wire::Reading& reading, std::span<const wire::Reading> before) {
    const std::string_view sensor = reading.sensor;
    const auto last = static_cast<unsigned char>(sensor.empty() ? 0 : sensor.back());
    const auto middle = static_cast<unsigned char>(sensor.empty() ? 0 : sensor[sensor.size() / 2]);
    const std::size_t bit = (sensor.size() * 31 + last * 7u + middle) % kBits;
    const bool is_new = !bits_[bit];
    bits_[bit] = true;
    if (is_new) return 0;
    return std::count_if(before.begin(), before.end(), [&reading](const wire::Reading& other) {
      return other.sensor == reading.sensor && other.device == reading.device &&
             other.time_source == wire::TimeSource::Given;
    });
  }

 private:
  static constexpr std::size_t kBits = 512;
  std::bitset<kBits> bits_;
};

}  // namespace

std::uint32_t packet_max_bytes(const config::LimitSettings& limits, std::uint64_t budget_bytes) {
  const std::uint64_t wanted = limits.message_limit_bytes + kAroundPayloadBytes;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>({wanted, budget_bytes, kRemainingLengthMax}));
}

GroupMessage& MessageGroup::append(const IncomingPublish& message) {
  ++counters_.messages;
  if (message.duplicate) ++counters_.redelivered;
  bytes_ += sizeof(GroupMessage) + message.topic.size() + message.payload.size();
  GroupMessage& added = messages_.emplace_back();
  added.connection = message.connection;
  added.session = message.session;
  added.packet_id = message.packet_id;
  added.qos = message.qos;
  added.first_reading = static_cast<std::uint32_t>(batch_.readings.size());
  if (message.publisher == nullptr) return added;
  const auth::Principal& publisher = *message.publisher;
  if (messages_.size() > 1 && messages_[messages_.size() - 2].publisher == publisher.name) {
    added.publisher = messages_[messages_.size() - 2].publisher;
    added.token = messages_[messages_.size() - 2].token;
    return added;
  }
  bytes_ += publisher.name.size();
  added.publisher = batch_.keep(publisher.name);
  if (publisher.grant) added.token = batch_.keep(publisher.grant->token_id);
  return added;
}

DecodeResult MessageGroup::add(const IncomingPublish& message, const std::vector<TopicRule>& rules,
                               const config::LimitSettings& limits,
                               ingest::IngestPipeline& pipeline, std::uint64_t remember_hash,
                               DeviceNames* names) {
  GroupMessage& added = append(message);
  added.topic = batch_.keep(message.topic);
  added.payload = batch_.keep(message.payload);
  const DecodeResult decoded = decode_message(rules, limits, added.topic, added.payload, batch_);
  counters_.skipped_values += decoded.skipped;
  if (decoded.outcome == DecodeOutcome::Rejected) {
    added.reason_text = batch_.keep(decoded.reason);
    added.reason =
        decoded.rule == nullptr ? ReasonCode::TopicNameInvalid : ReasonCode::PayloadFormatInvalid;
    return decoded;
  }
  if (decoded.outcome == DecodeOutcome::Ignored) {
    ++counters_.ignored;
    return decoded;
  }
  DeviceNames::Named named;
  if (names != nullptr && !decoded.device_levels.empty()) {
    const wire::Reading& first = batch_.readings[added.first_reading];
    named = names->name_of(first.namespace_name, first.device, decoded.device_levels);
    if (const Status status = name_device(named, added); !status.ok()) {
      batch_.readings.resize(added.first_reading);
      added.reason_text = batch_.keep(status.message());
      added.reason = ReasonCode::PayloadFormatInvalid;
      return decoded;
    }
  }
  if (message.principal != nullptr && !check_scope(*message.principal, pipeline, added)) {
    return decoded;
  }
  if (named.is_new) {
    names->keep(named);
    add_record({ingest::RecordChange::Kind::Put, names->namespace_id(), named.key, named.value},
               IfRejected::Kept);
  }
  if (decoded.left_out > 0) added.left_out = batch_.keep(decoded.reason);
  added.readings = static_cast<std::uint32_t>(batch_.readings.size()) - added.first_reading;
  bytes_ += added.readings * kReadingBytes;
  added.content_hash = remember_hash;
  for (std::size_t i = added.first_reading; i < batch_.readings.size(); ++i)
    batch_.readings[i].comes_again = message.duplicate || message.retained;
  date(added, !decoded.time_problem.empty(), pipeline);
  if (decoded.records > 1) spread_records(added);
  return decoded;
}

void MessageGroup::date(GroupMessage& added, bool is_unreadable, ingest::IngestPipeline& pipeline) {
  added.arrival_ns =
      pipeline.times().take_arrival_times(std::max<std::uint32_t>(added.readings, 1));
  bool is_unbelievable = is_unreadable;
  SeriesSeen seen;
  for (std::size_t i = added.first_reading; i < batch_.readings.size(); ++i) {
    wire::Reading& reading = batch_.readings[i];
    if (reading.time_ns && pipeline.times().is_believable(*reading.time_ns)) {
      has_unsettled_ = true;
      continue;
    }
    is_unbelievable |= reading.time_ns.has_value();
    const std::span<const wire::Reading> before(&batch_.readings[added.first_reading],
                                                i - added.first_reading);
    reading.time_ns = added.arrival_ns + (added.readings > 1 ? seen.count(reading, before) : 0);
    reading.time_source = wire::TimeSource::Given;
    ++added.dated;
  }
  if (is_unbelievable) ++counters_.times_unbelievable;
}

Status MessageGroup::name_device(const DeviceNames::Named& named, const GroupMessage& added) {
  if (named.name == batch_.readings[added.first_reading].device) return ok();
  EC_TRY(wire::check_name("device", named.name));
  const std::string_view name = batch_.keep(named.name);
  for (std::size_t i = added.first_reading; i < batch_.readings.size(); ++i) {
    batch_.readings[i].device = name;
  }
  return ok();
}

// Records whose time is that of arrival would replace each other: each is a nanosecond later.
void MessageGroup::spread_records(const GroupMessage& added) {
  std::unordered_map<std::string, std::int64_t> last_ns;
  for (std::size_t i = added.first_reading; i < batch_.readings.size(); ++i) {
    wire::Reading& reading = batch_.readings[i];
    if (reading.time_source != wire::TimeSource::Given) continue;
    const std::string series = std::string(reading.device) + "/" + std::string(reading.sensor);
    const auto [last, is_first] = last_ns.try_emplace(series, *reading.time_ns);
    if (!is_first) reading.time_ns = ++last->second;
  }
}

std::vector<ingest::DeviceTimes::Asked> MessageGroup::unsettled() {
  std::vector<ingest::DeviceTimes::Asked> asked;
  if (!std::exchange(has_unsettled_, false)) return asked;
  for (const GroupMessage& message : messages_) {
    for (std::size_t i = 0; i < message.readings; ++i) {
      wire::Reading& reading = batch_.readings[message.first_reading + i];
      if (reading.time_source == wire::TimeSource::Given) continue;
      // Behind those of its message that have none of their own, where there are any.
      asked.push_back({&reading, message.arrival_ns + message.dated});
    }
  }
  return asked;
}

// A message is stored whole or not at all: one reading outside the scope, and none is.
bool MessageGroup::check_scope(const auth::Principal& principal, ingest::IngestPipeline& pipeline,
                               GroupMessage& added) {
  for (std::size_t i = added.first_reading; i < batch_.readings.size(); ++i) {
    const wire::Reading& reading = batch_.readings[i];
    const Status status = auth::authorize_write(principal, reading);
    if (status.ok()) continue;
    if (pipeline.audit() != nullptr) {
      pipeline.audit()->note_denied("mqtt.publish", principal, reading.namespace_name,
                                    reading.device);
    }
    batch_.readings.resize(added.first_reading);
    added.reason_text = batch_.keep(status.message());
    added.reason = ReasonCode::NotAuthorized;
    return false;
  }
  return true;
}

void MessageGroup::add_repeat(const IncomingPublish& message) {
  append(message);
  ++counters_.repeats_dropped;
}

void MessageGroup::add_rejected(const IncomingPublish& message, ReasonCode reason,
                                std::string_view why) {
  GroupMessage& added = append(message);
  added.topic = batch_.keep(message.topic);
  added.payload = batch_.keep(message.payload);
  added.reason_text = batch_.keep(why);
  added.reason = reason;
}

void MessageGroup::add_oversized(const IncomingPublish& message, std::uint32_t packet_bytes,
                                 const config::LimitSettings& limits) {
  add_rejected(
      message, ReasonCode::QuotaExceeded,
      "packet of " + std::to_string(packet_bytes) +
          " bytes is over limits.message-limit = " + std::to_string(limits.message_limit_bytes));
}

GroupMessage& MessageGroup::add_other(Purpose purpose, std::uint64_t connection,
                                      std::uint64_t session) {
  bytes_ += sizeof(GroupMessage);
  GroupMessage& added = messages_.emplace_back();
  added.connection = connection;
  added.session = session;
  added.first_reading = static_cast<std::uint32_t>(batch_.readings.size());
  added.purpose = purpose;
  if (purpose == Purpose::Ended) ended_.push_back(messages_.size() - 1);
  return added;
}

void MessageGroup::add_record(const ingest::RecordChange& record, IfRejected if_rejected) {
  bytes_ += sizeof(MessageRecord) + record.key.size() + record.value.size();
  MessageRecord& added = records_.emplace_back();
  added.change = record;
  added.change.key = batch_.keep(record.key);
  added.change.value = batch_.keep(record.value);
  added.message = messages_.size() - 1;
  added.if_rejected = if_rejected;
}

std::vector<ingest::RecordChange> MessageGroup::stored_records() const {
  std::vector<ingest::RecordChange> changes;
  for (const MessageRecord& record : records_) {
    if (!is_of_rejected(record)) changes.push_back(record.change);
  }
  return changes;
}

// Written last, so none whose session has ended in this same group.
std::vector<ingest::RecordChange> MessageGroup::rejected_records() const {
  std::vector<ingest::RecordChange> changes;
  for (const MessageRecord& record : records_) {
    if (!is_of_rejected(record) || record.if_rejected == IfRejected::Dropped) continue;
    const bool has_ended =
        std::any_of(ended_.begin(), ended_.end(), [this, &record](std::size_t ended) {
          return ended > record.message && record.change.key.starts_with(messages_[ended].topic);
        });
    if (!has_ended) changes.push_back(record.change);
  }
  return changes;
}

void MessageGroup::clear() {
  batch_.clear();
  messages_.clear();
  records_.clear();
  ended_.clear();
  counters_ = {};
  bytes_ = 0;
  has_unsettled_ = false;
}

}  // namespace edgecase::mqtt
