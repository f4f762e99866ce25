// A message becomes readings: the route says how.
//
// - `auto`: a number; true/false alone; a JSON object or array, each leaf a reading; other UTF-8
//   text; else bytes. What begins with `{` must be JSON; what only begins with `[` may be text.
//   White space, NULs at the end and a byte order mark around it are no part of it.
// - What a number is, and what `nan` or `0x1F` is, here and elsewhere: wire/NUMBERS.md. In a JSON
//   object a value that is none costs itself alone; `left_out` counts those nobody could read.
// - Sensor: the route's name, then the leaf's keys and indexes joined by `.`; "value" when both are
//   empty. The later of two leaves with one name is called `name~2`.
// - Numbers are float64; integers beyond 2^53 lose digits. JSON null is skipped. JSON texts are
//   texts.
// - Leaves that a pointer of the rule used as device, sensor or time are not stored again. A time
//   that is absent or null, or cannot be read, means: time of arrival. Whether one that can be read
//   is believed, others decide (ingest/reading_times.h).
// - With `records` each element of that array is a message of its own: its time and names are
//   looked up in it, then in the whole. One that has none costs itself; what lies beside is stored
//   too.
// - An empty payload (which is how MQTT clears a retained message) and one without any value are
//   ignored, not rejected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "edgecase/status.h"
#include "mqtt/topic_rule.h"
#include "wire/reading.h"

namespace edgecase::ingest {
class IngestPipeline;
}

namespace edgecase::mqtt {

enum class DecodeOutcome : std::uint8_t {
  Readings,  // at least one in the batch
  Ignored,   // nothing to store, on purpose
  Rejected,  // `reason` says why
};

struct DecodeResult {
  DecodeOutcome outcome = DecodeOutcome::Ignored;
  std::string reason;          // for people: of Rejected, of Ignored, and of what was left out
  std::uint32_t skipped = 0;   // JSON nulls, and values that mean "none"
  std::uint32_t left_out = 0;  // values of the message that nobody can read, beside its readings
  std::size_t records = 0;     // that lie in it, by the rule's `records`
  std::string device_levels;   // what the device's name was made of, where it may be another's too
  const TopicRule* rule = nullptr;
  const Route* route = nullptr;
  std::string time_problem;  // why a time in it cannot be read: then that of arrival counts
};

// Why a message is rejected that no rule takes.
inline constexpr std::string_view kNoRuleReason = "no rule takes this topic";

// Appends the message's readings to `batch`; of a rejected one none. They borrow from `payload` and
// from the batch.
DecodeResult decode_message(const std::vector<TopicRule>& rules,
                            const config::LimitSettings& limits, std::string_view topic,
                            std::string_view payload, wire::ReadingBatch& batch);

// Rules tried on one message, with nothing stored (rule_trial.cc). Any thread.

// A rule that makes readings of a message as people and firmware lay topics out: a preset; else a
// topic whose last levels are device and sensor, or the device where the payload is an object. None
// where neither does. A board has few topics that nobody has a rule for: it takes its time.
std::optional<config::MqttRuleSettings> suggested_rule(const config::LimitSettings& limits,
                                                       std::string_view topic,
                                                       std::string_view payload);

// `edgecase mqtt test TOPIC PAYLOAD`: which rule takes a message and which readings it would make.
// Needs the configuration only; nothing is stored. One JSON object:
//   {"outcome":"readings"|"ignored"|"rejected", "reason"?,
//    "rule"?: {"number","line"?,"topic","preset"?,"template"}, "skipped"?,
//    "readings":[{"namespace","device","sensor","time"?,"time_reason","value","type"?}, …],
//    "suggestion"?: {"rule": lines of a configuration, "readings"}}
// A suggestion is there where no rule takes the topic, and suggested_rule() knows one.
// Bytes are base64 with "type":"bytes". Without "time" the time of arrival would be taken;
// "time_reason" says why the one or the other. `pipeline` judges times; null: the message's own
// counts. InvalidArgument: the rules do not compile.
Result<std::string> mqtt_test_json(const std::vector<config::MqttRuleSettings>& rules,
                                   const config::LimitSettings& limits,
                                   ingest::IngestPipeline* pipeline, std::string_view topic,
                                   std::string_view payload);

}  // namespace edgecase::mqtt
