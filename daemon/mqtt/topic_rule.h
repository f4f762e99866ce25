// One [[mqtt.rule]] of the configuration, compiled: which topics it takes and what it makes of a
// message. A rule without a preset has one route; a preset brings several (presets.cc). Immutable
// once compiled, so any thread may use it. What rules make of a message
// (payload_decoder.cc) can be asked for (mqtt_test_json()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "edgecase/status.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/topic_names.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::mqtt {

// The time a message carries, in the ways devices write it. Exact: decimals are read as decimals,
// never through float64; digits below a nanosecond are cut.

enum class TimeFormat : std::uint8_t { Auto, Rfc3339, Unix, UnixMs, UnixUs, UnixNs };

// "auto", "rfc3339", "unix", "unix_ms", "unix_us", "unix_ns".
Result<TimeFormat> parse_time_format(std::string_view name);

// Auto takes RFC 3339, or a number whose size tells its unit: below 10^11 seconds (year 5138),
// below 10^14 milliseconds, below 10^17 microseconds, else nanoseconds. RFC 3339 is taken with `T`
// or a space, with `Z`, `+01:00`, `+0100` or `+01`; a time without an offset is an error.
// InvalidArgument also for what int64 nanoseconds cannot hold.
// With a zone, a time without an offset is what clocks there show.
Result<std::int64_t> parse_message_time_ns(std::string_view text, TimeFormat format,
                                           const wire::TimeZone* zone = nullptr);

// "2026-11-20T14:00:00" without an offset: local time of a place we do not know.
bool is_time_without_offset(std::string_view text);

// Whether the time at that JSON pointer says when a device was last heard, rather than when its
// values were measured: zigbee2mqtt's `last_seen`.
bool says_last_heard(std::string_view pointer);

enum class PayloadKind : std::uint8_t { Auto, Number, Json, Text, Bytes };

// A value that lies outside of the part that is flattened, stored under a name of its own.
struct JsonPick {
  std::string pointer;
  std::string name;
  bool only_if_empty = false;  // when the flattened part gave nothing
};

// Another part that is flattened, under names that begin with `name`.
struct JsonBranch {
  std::string pointer;
  std::string name;
};

// What to do with a payload that matched a route.
struct PayloadPlan {
  PayloadKind kind = PayloadKind::Auto;
  std::string root;                     // flatten below this pointer only
  std::vector<JsonBranch> branches;     // and below these
  std::vector<JsonPick> picks;          // and these
  std::vector<std::string> drops;       // pointers; these leaves and all below them are not stored
  std::vector<std::string> drop_names;  // a leaf whose last token is one of these is not stored
  std::vector<std::string> times;       // pointers; the first that is there counts
  TimeFormat time_format = TimeFormat::Auto;
  bool local_time_is_unknown = false;  // a time without offset is left out instead of refused
  std::shared_ptr<const wire::TimeZone> zone;  // of times without an offset; null: none
  // The elements of the array at this pointer are messages of their own: `times`, and pointers to
  // names, are looked up in each, then in the whole. "/": the message is the array. What lies
  // beside the array is stored as ever.
  std::string records;
  // Before the names of what is in a record: the first of these that is there.
  std::vector<std::string> record_names;
  std::string record_root;   // within each; what is below loses it
  bool only_scalar = false;  // a JSON object or array is no reading here
  // What is no JSON object is the attribute that the last of the device's levels names.
  bool scalar_is_attribute = false;
  bool unquote = false;  // a JSON text alone, `"on"`, is stored without its quotes
  // Store only if the text at `only_pointer` is one of these (Shelly's "method").
  std::string only_pointer;
  std::vector<std::string> only_texts;
};

enum class RouteAction : std::uint8_t { Store, Ignore };

struct Route {
  TopicTemplate topic;
  RouteAction action = RouteAction::Store;
  bool subscribe = true;  // false: only sorts out what another route's subscription brings
  bool fallback = false;  // taken only where no rule has another route for the topic
  std::optional<NameTemplate> namespace_name;
  std::optional<NameTemplate> device;
  std::optional<NameTemplate> sensor;
  std::optional<NameTemplate> identity;  // what tells devices apart whose names may be the same
  std::string device_pointer;            // "" or a JSON pointer
  std::string sensor_pointer;
  std::vector<std::string> silent_sensors;  // sensor names from the topic that are no prefix
  PayloadPlan payload;
};

struct TopicRule {
  std::size_t number = 0;  // as written, from 1
  int line = 0;            // of the file, 0 when unknown
  int qos = 1;
  std::string topic;
  std::string preset;
  std::int64_t retention_ns = wire::kRetentionOfNoTopic;  // of readings it takes
  std::optional<wire::TopicMetadata> metadata;            // of new devices, and tiers
  std::vector<Route> routes;
};

// InvalidArgument: "mqtt.rule 2 (line 14): topic: …".
Result<TopicRule> compile_rule(const config::MqttRuleSettings& settings, std::size_t number);
Result<std::vector<TopicRule>> compile_rules(const std::vector<config::MqttRuleSettings>& rules);

struct RouteMatch {
  const TopicRule* rule = nullptr;
  const Route* route = nullptr;
  TopicMatch topic;
};
// The first rule, and in it the first route, that takes `topic`; where there is none, the first
// that does so as a fallback.
std::optional<RouteMatch> find_route(const std::vector<TopicRule>& rules, std::string_view topic);

struct Subscription {
  std::string filter;
  int qos = 1;
  std::uint32_t id = 0;  // of MQTT 5: what tells copies of a message apart; 0: none
};
// What to subscribe to: every route's filter once, without those that another one covers, so that
// a broker does not deliver a message twice.
std::vector<Subscription> subscriptions_of(const std::vector<TopicRule>& rules);

// Topic layouts and payload shapes of widely used firmware and bridges, as ready-made routes. What
// each one takes and how it names things: daemon/mqtt/DESIGN.md.

// zigbee2mqtt, tasmota, shelly, esphome, homeassistant, ttn.
const std::vector<std::string_view>& preset_names();

// The routes of preset `name`, in the order in which they are tried. With a `topic`, that template
// alone is subscribed to and gets the preset's way of reading payloads. InvalidArgument names the
// key that is wrong.
Result<std::vector<Route>> preset_routes(std::string_view name, std::string_view topic);

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

// Appends to `batch`, all readings or none. They borrow from `payload` and from the batch.
DecodeResult decode_message(const std::vector<TopicRule>& rules,
                            const config::LimitSettings& limits, std::string_view topic,
                            std::string_view payload, wire::ReadingBatch& batch);

// A JSON document as the flat list of its leaves, in the order they come (json_leaves.cc). Reads
// any JSON value; a scalar is one leaf whose pointer is empty. Nothing is built but the list, and
// depth and number of leaves are limited while reading.

// Refused: JSON knows no such value, and nobody could say which it is; it costs itself alone.
enum class JsonKind : std::uint8_t { Null, Bool, Number, Text, Refused };

struct JsonLeaf {
  std::string pointer;  // RFC 6901: "/data/temp", "/list/0"
  JsonKind kind = JsonKind::Null;
  bool boolean = false;
  double number = 0;
  std::string text;  // of Text; of Number and Refused: as it stood there
  // A long Text instead, which nothing but a value may be: what lies between its quotes in the
  // document (wire/json_text.h).
  std::string_view long_text;
};

struct JsonLimits {
  std::size_t depth = 32;
  std::size_t leaves = 1'024;
};

// A value that is none in JSON, as firmware prints it, is what wire/NUMBERS.md says: a number
// (`+5`, `.5`), Null (`nan`, nothing), or Refused (`0x1F`, `1e400`). InvalidArgument: not JSON,
// invalid UTF-8, a limit (named in the message).
Result<std::vector<JsonLeaf>> read_json_leaves(std::string_view text, const JsonLimits& limits);

// "/a/b~1c" is well formed (RFC 6901) and names something: InvalidArgument otherwise.
Status check_json_pointer(std::string_view pointer);

// Whether `pointer` is `root` or leads below it; its part behind the last `/`.
bool lies_at_or_below(std::string_view root, std::string_view pointer);
std::string_view last_token(std::string_view pointer);

// The sensor name of what lies below `root` (a pointer): tokens joined by `.`, `/` inside a key
// becomes `.` too.
std::string name_below(std::string_view root, std::string_view pointer);

}  // namespace edgecase::mqtt
