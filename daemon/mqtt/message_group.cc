#include "mqtt/message_group.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wire/encoding.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

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

namespace {

constexpr std::size_t kForgetAtOnceMax = 1'000;

// Cuts at a character's beginning.
std::string_view shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

void append_text(std::string_view key, std::string_view text, std::string& json) {
  json += ",\"" + std::string(key);
  const std::string_view cut = shortened(text, kRejectedPayloadMaxBytes);
  if (wire::is_valid_utf8(cut)) {
    json += "\":";
    wire::append_json_string(cut, json);
  } else {
    json += "_base64\":\"";
    wire::append_base64(text.substr(0, kRejectedPayloadMaxBytes), json);
    json += '"';
  }
  if (cut.size() < text.size()) {
    json += ",\"" + std::string(key) + "_bytes\":" + std::to_string(text.size());
  }
}

}  // namespace

std::string rejected_message_json(std::string_view topic, std::string_view reason,
                                  std::string_view payload) {
  std::string json;
  append_text("topic", topic, json);
  append_text("reason", reason, json);
  append_text("payload", payload, json);
  json[0] = '{';
  json += '}';
  return json;
}

Result<std::unique_ptr<RejectedMessages>> RejectedMessages::open(Engine& engine,
                                                                 catalog::Catalog& catalog,
                                                                 ingest::IngestPipeline& pipeline,
                                                                 std::uint64_t limit) {
  std::unique_ptr<RejectedMessages> messages(new RejectedMessages(catalog, pipeline, limit));
  EC_TRY(messages->load(engine));
  return messages;
}

Status RejectedMessages::load(Engine& engine) {
  const auto series = catalog_.find(wire::kRejectedNamespace, kRejectedDevice, kRejectedSensor);
  if (series.status().code() == StatusCode::NotFound) return ok();
  if (!series.ok()) return series.status();
  const catalog::SeriesId& id = series->id;
  KeyRange range;
  range.lower =
      wire::make_reading_key({id.device, id.sensor, std::numeric_limits<std::int64_t>::min()});
  range.upper =
      wire::make_reading_key({id.device, id.sensor + 1, std::numeric_limits<std::int64_t>::min()});
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<Iterator> each,
                      engine.scan(id.namespace_id, range, options));
  const MutexLock lock(mutex_);
  for (; each->valid(); each->next()) {
    wire::ReadingKey key;
    if (wire::decode_reading_key(each->key(), key)) times_ns_.push_back(key.time_ns);
  }
  return each->status();
}

Status RejectedMessages::keep(std::span<const RejectedMessage> messages,
                              std::span<const ingest::RecordChange> records) {
  if (messages.size() > limit_) messages = messages.last(static_cast<std::size_t>(limit_));
  if (messages.empty() && records.empty()) return ok();
  const MutexLock lock(mutex_);
  wire::ReadingBatch batch;
  const std::int64_t now_ns = pipeline_.times().arrival_clock_ns();
  std::int64_t last_ns =
      times_ns_.empty() ? now_ns - 1 : pipeline_.times().dated_ns(times_ns_.back());
  // The clock has just become right, and the last one is not dated yet.
  if (wire::is_undated_time(last_ns) && !wire::is_undated_time(now_ns)) last_ns = now_ns - 1;
  for (const RejectedMessage& message : messages) {
    const std::string json = rejected_message_json(message.topic, message.reason, message.payload);
    wire::Reading& reading = batch.readings.emplace_back();
    reading.namespace_name = wire::kRejectedNamespace;
    reading.device = kRejectedDevice;
    reading.sensor = kRejectedSensor;
    reading.value = wire::Value::of_text(batch.keep(json));
    last_ns = std::max(now_ns, last_ns + 1);
    reading.time_ns = last_ns;
  }
  EC_TRY(make_room(messages.size()));
  const auth::Principal daemon{auth::PrincipalKind::Internal, "mqtt"};
  EC_ASSIGN_OR_RETURN(const auth::AuthorizedBatch authorized, auth::authorize_write(daemon, batch));
  EC_TRY(pipeline_.ingest(authorized, nullptr, {}, records));
  for (const wire::Reading& reading : batch.readings) times_ns_.push_back(*reading.time_ns);
  return ok();
}

// Forgets the oldest, so that `count` more are within the limit.
Status RejectedMessages::make_room(std::size_t count) {
  while (times_ns_.size() + count > limit_) {
    const auto series = catalog_.find(wire::kRejectedNamespace, kRejectedDevice, kRejectedSensor);
    if (series.status().code() == StatusCode::NotFound) times_ns_.clear();  // erased
    if (times_ns_.empty()) return ok();
    if (!series.ok()) return series.status();
    const std::size_t surplus = std::min<std::size_t>(
        times_ns_.size() + count - static_cast<std::size_t>(limit_), kForgetAtOnceMax);
    const std::vector<std::int64_t> oldest(
        times_ns_.begin(), times_ns_.begin() + static_cast<std::ptrdiff_t>(surplus));
    EC_TRY(pipeline_.times().forget(series->id, oldest));
    times_ns_.erase(times_ns_.begin(), times_ns_.begin() + static_cast<std::ptrdiff_t>(surplus));
  }
  return ok();
}

}  // namespace edgecase::mqtt
