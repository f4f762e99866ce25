#include "mqtt/topic_rule.h"

#include <algorithm>
#include <string>

#include "edgecase/options.h"
#include "mqtt/json_leaves.h"
#include "wire/decimal.h"
#include "wire/encoding.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::mqtt {
namespace {

int shift_of(TimeFormat format, const wire::ExactDecimal& decimal) {
  switch (format) {
    case TimeFormat::Unix: return 9;
    case TimeFormat::UnixMs: return 6;
    case TimeFormat::UnixUs: return 3;
    case TimeFormat::UnixNs: return 0;
    default: break;
  }
  const int whole_digits = decimal.whole_digits();
  if (whole_digits <= 11) return 9;
  if (whole_digits <= 14) return 6;
  return whole_digits <= 17 ? 3 : 0;
}

Status bad_time(std::string_view text, std::string_view what) {
  constexpr std::size_t kShownBytes = 64;
  return invalid_argument("time \"" + std::string(text.substr(0, kShownBytes)) + "\" " +
                          std::string(what));
}

Result<std::int64_t> parse_rfc3339(std::string_view text, const wire::TimeZone* zone) {
  EC_ASSIGN_OR_RETURN(const wire::DateTime time, wire::parse_date_time(text));
  if (!time.has_clock) return bad_time(text, "is a date alone");
  if (!time.offset_seconds && zone == nullptr)
    return bad_time(text, "has no offset from UTC; time-zone says whose clock it is");
  return wire::instant_of(time, text, zone);
}

}  // namespace

Result<TimeFormat> parse_time_format(std::string_view name) {
  if (name == "auto" || name.empty()) return TimeFormat::Auto;
  if (name == "rfc3339") return TimeFormat::Rfc3339;
  if (name == "unix") return TimeFormat::Unix;
  if (name == "unix_ms") return TimeFormat::UnixMs;
  if (name == "unix_us") return TimeFormat::UnixUs;
  if (name == "unix_ns") return TimeFormat::UnixNs;
  return invalid_argument("time-format: \"" + std::string(name) +
                          "\": one of auto, rfc3339, unix, unix_ms, unix_us, unix_ns");
}

Result<std::int64_t> parse_message_time_ns(std::string_view text, TimeFormat format,
                                           const wire::TimeZone* zone) {
  if (format == TimeFormat::Rfc3339) return parse_rfc3339(text, zone);
  const auto decimal = wire::read_exact_decimal(text);
  if (!decimal) {
    if (format == TimeFormat::Auto) return parse_rfc3339(text, zone);
    return bad_time(text, "is not a number");
  }
  const auto time_ns = wire::scaled(*decimal, shift_of(format, *decimal));
  if (!time_ns) return bad_time(text, "is out of range");
  return *time_ns;
}

bool says_last_heard(std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  const std::string_view name = slash == pointer.npos ? pointer : pointer.substr(slash + 1);
  return name == "last_seen" || name == "lastSeen" || name == "lastseen";
}

bool is_time_without_offset(std::string_view text) {
  const auto time = wire::parse_date_time(text);
  return time.ok() && time->has_clock && !time->offset_seconds;
}

namespace {

Result<PayloadKind> parse_payload_kind(std::string_view name) {
  if (name == "auto" || name.empty()) return PayloadKind::Auto;
  if (name == "number") return PayloadKind::Number;
  if (name == "json") return PayloadKind::Json;
  if (name == "text") return PayloadKind::Text;
  if (name == "bytes") return PayloadKind::Bytes;
  return invalid_argument("payload: \"" + std::string(name) +
                          "\": one of auto, number, json, text, bytes");
}

// Puts the key's name before what is wrong with it.
Status in_key(std::string_view key, const Status& status) {
  return status.with_context(std::string(key) + ": ");
}

// A key that is a JSON pointer when it begins with `/`, else a name with placeholders.
Status apply_name(std::string_view key, const std::string& text, Route& route,
                  std::optional<NameTemplate>& name, std::string& pointer) {
  if (text.empty()) return ok();
  if (text[0] == '/') {
    if (Status status = check_json_pointer(text); !status.ok()) return in_key(key, status);
    if (route.payload.kind != PayloadKind::Auto && route.payload.kind != PayloadKind::Json) {
      return invalid_argument(std::string(key) + ": a JSON pointer needs payload auto or json");
    }
    pointer = text;
    name.reset();
    return ok();
  }
  auto parsed = NameTemplate::parse(text, route.topic);
  if (!parsed.ok()) return in_key(key, parsed.status());
  if (parsed->is_fixed()) {
    if (Status status = wire::check_name(key, text); !status.ok()) return in_key(key, status);
  }
  name = std::move(parsed).value();
  pointer.clear();
  return ok();
}

Status apply_records(const config::MqttRuleSettings& settings, Route& route) {
  if (settings.records.empty()) return ok();
  if (!settings.preset.empty()) return invalid_argument("records: a preset has its own");
  if (route.payload.kind != PayloadKind::Auto && route.payload.kind != PayloadKind::Json) {
    return invalid_argument("records: needs payload auto or json");
  }
  if (settings.records != "/") {
    if (Status status = check_json_pointer(settings.records); !status.ok()) {
      return in_key("records", status);
    }
  }
  route.payload.records = settings.records;
  return ok();
}

Status apply_settings(const config::MqttRuleSettings& settings, Route& route) {
  if (!settings.payload.empty() && settings.payload != "auto") {
    EC_ASSIGN_OR_RETURN(route.payload.kind, parse_payload_kind(settings.payload));
  }
  EC_TRY(apply_name("device", settings.device, route, route.device, route.device_pointer));
  EC_TRY(apply_name("sensor", settings.sensor, route, route.sensor, route.sensor_pointer));
  std::string no_pointer;
  EC_TRY(apply_name("namespace", settings.namespace_name, route, route.namespace_name, no_pointer));
  if (!no_pointer.empty()) return invalid_argument("namespace: takes a name, not a JSON pointer");
  if (!settings.namespace_name.empty() && settings.namespace_name[0] == '_') {
    return invalid_argument("namespace: names beginning with `_` are the daemon's own");
  }
  if (!settings.time.empty()) {
    if (Status status = check_json_pointer(settings.time); !status.ok()) {
      return in_key("time", status);
    }
    route.payload.times = {settings.time};
  }
  if (!settings.time_zone.empty()) {
    auto zone = wire::TimeZone::find(settings.time_zone);
    if (!zone.ok()) return in_key("time-zone", zone.status());
    route.payload.zone = std::make_shared<const wire::TimeZone>(std::move(zone).value());
  }
  EC_TRY(apply_records(settings, route));
  auto format = parse_time_format(settings.time_format);
  if (!format.ok()) return format.status();
  if (!settings.time.empty() || *format != TimeFormat::Auto) route.payload.time_format = *format;
  if (!route.device && route.device_pointer.empty() && !route.topic.has(TopicField::Device)) {
    return invalid_argument(
        "no device: put {device} into the topic, or set device = \"name\" or a JSON pointer");
  }
  return ok();
}

// retention; owner, and purpose as "heating,billing".
Status compile_metadata(const config::MqttRuleSettings& settings, TopicRule& rule) {
  wire::TopicMetadata metadata;
  if (!settings.retention.empty()) {
    EC_ASSIGN_OR_RETURN(wire::Keeping keeping, wire::parse_keeping(settings.retention));
    rule.retention_ns = keeping.raw_ns;
    metadata.tiers = std::move(keeping.tiers);
  }
  if (!metadata.tiers.empty()) rule.metadata = metadata;
  if (settings.owner.empty() && settings.purpose.empty()) return ok();
  metadata.owner = settings.owner;
  if (!settings.owner.empty()) EC_TRY(in_key("owner", wire::check_name("owner", settings.owner)));
  std::string_view rest = settings.purpose;
  while (!rest.empty()) {
    const std::string_view purpose = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(purpose.size() + 1, rest.size()));
    EC_TRY(in_key("purpose", wire::check_name("purpose", purpose)));
    metadata.purposes.emplace_back(purpose);
  }
  rule.metadata = std::move(metadata);
  return ok();
}

Status compile_into(const config::MqttRuleSettings& settings, TopicRule& rule) {
  if (settings.qos == 2) {
    return invalid_argument(
        "qos: 2 would be acknowledged before the reading is durable (MQTT 3.1.1); use 1");
  }
  if (settings.qos != 0 && settings.qos != 1) return invalid_argument("qos: 0 or 1");
  EC_TRY(parse_payload_kind(settings.payload).status());
  if (settings.preset.empty()) {
    auto topic = TopicTemplate::parse(settings.topic);
    if (!topic.ok()) return in_key("topic", topic.status());
    rule.routes.push_back(Route{});
    rule.routes.back().topic = std::move(topic).value();
  } else {
    auto routes = preset_routes(settings.preset, settings.topic);
    if (!routes.ok()) return routes.status();
    rule.routes = std::move(routes).value();
  }
  for (Route& route : rule.routes) {
    if (route.action == RouteAction::Store) EC_TRY(apply_settings(settings, route));
  }
  return ok();
}

}  // namespace

Result<TopicRule> compile_rule(const config::MqttRuleSettings& settings, std::size_t number) {
  TopicRule rule;
  rule.number = number;
  rule.line = settings.line;
  rule.qos = settings.qos;
  rule.topic = settings.topic;
  rule.preset = settings.preset;
  Status said = compile_metadata(settings, rule);
  if (Status status = said.ok() ? compile_into(settings, rule) : said; !status.ok()) {
    std::string where = "mqtt.rule " + std::to_string(number);
    if (settings.line > 0) where += " (line " + std::to_string(settings.line) + ")";
    return in_key(where, status);
  }
  if (rule.topic.empty()) rule.topic = rule.routes.front().topic.text();
  return rule;
}

Result<std::vector<TopicRule>> compile_rules(const std::vector<config::MqttRuleSettings>& rules) {
  std::vector<TopicRule> compiled;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    EC_ASSIGN_OR_RETURN(TopicRule rule, compile_rule(rules[i], i + 1));
    compiled.push_back(std::move(rule));
  }
  return compiled;
}

std::optional<RouteMatch> find_route(const std::vector<TopicRule>& rules, std::string_view topic) {
  RouteMatch found;
  for (const bool fallback : {false, true}) {
    for (const TopicRule& rule : rules) {
      for (const Route& route : rule.routes) {
        if (route.fallback != fallback || !route.topic.match(topic, found.topic)) continue;
        found.rule = &rule;
        found.route = &route;
        return found;
      }
    }
  }
  return std::nullopt;
}

std::vector<Subscription> subscriptions_of(const std::vector<TopicRule>& rules) {
  std::vector<Subscription> all;
  for (const TopicRule& rule : rules) {
    for (const Route& route : rule.routes) {
      if (route.subscribe) all.push_back({route.topic.filter(), rule.qos});
    }
  }
  std::vector<Subscription> kept;
  for (const Subscription& candidate : all) {
    const auto covering =
        std::find_if(kept.begin(), kept.end(), [&candidate](const Subscription& other) {
          return filter_covers(other.filter, candidate.filter);
        });
    if (covering != kept.end()) {
      covering->qos = std::max(covering->qos, candidate.qos);
      continue;
    }
    Subscription added = candidate;
    std::erase_if(kept, [&added](const Subscription& other) {
      if (!filter_covers(added.filter, other.filter)) return false;
      added.qos = std::max(added.qos, other.qos);
      return true;
    });
    kept.push_back(std::move(added));
  }
  return kept;
}

}  // namespace edgecase::mqtt
