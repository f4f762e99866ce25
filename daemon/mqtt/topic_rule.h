// One [[mqtt.rule]] of the configuration, compiled: which topics it takes, and what is to be made
// of a message (PayloadPlan; payload_decoder.h does it). A rule without a preset has one route; a
// preset brings several (presets.cc). With it stands how the time in a message is read. Immutable
// once compiled, so any thread may use it.
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

}  // namespace edgecase::mqtt
