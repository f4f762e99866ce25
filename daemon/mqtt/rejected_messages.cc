#include "mqtt/rejected_messages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/encoding.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::mqtt {
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
