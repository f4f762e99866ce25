// Rules tried on one message: `edgecase mqtt test`, and the rule that would do where none does.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "ingest/ingest_pipeline.h"
#include "mqtt/payload_decoder.h"
#include "mqtt/topic_rule.h"
#include "wire/encoding.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::mqtt {
namespace {

using Json = nlohmann::ordered_json;

// Which times the readings would get, and why, one reason for each. No time: that of arrival.
std::vector<std::string> judge_times(const DecodeResult& result, const std::string& time_ahead,
                                     ingest::IngestPipeline* pipeline, wire::ReadingBatch& batch) {
  std::vector<std::string> reasons;
  std::vector<ingest::DeviceTimes::Asked> asked;
  std::vector<std::size_t> places;
  for (wire::Reading& reading : batch.readings) {
    std::string& reason = reasons.emplace_back("the message says it");
    if (!reading.time_ns) {
      reason = result.time_problem.empty() ? "the message says none" : result.time_problem;
      continue;
    }
    if (pipeline == nullptr) continue;
    if (pipeline->times().is_believable(*reading.time_ns)) {
      if (reading.time_source == wire::TimeSource::LastHeard) {
        reason = "the device was last heard then, and its series has nothing newer";
      }
      places.push_back(reasons.size() - 1);
      asked.push_back({&reading, 0});
      continue;
    }
    reason.clear();
    wire::append_time(*reading.time_ns, reason);
    reason += *reading.time_ns < ingest::kFirstBelievableNs
                  ? ", which the message says, is before 2000: of a clock that was never set"
                  : ", which the message says, is later than the clock by more than "
                    "limits.time-ahead = " +
                        time_ahead;
    reading.time_ns.reset();
  }
  if (pipeline == nullptr) return reasons;
  const auto verdicts = pipeline->times().preview(asked);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (verdicts[i] == ingest::DeviceTimes::Verdict::Own) continue;
    asked[i].reading->time_ns.reset();
    reasons[places[i]] = verdicts[i] == ingest::DeviceTimes::Verdict::Repeated
                             ? "the series has another value of the time that the message says"
                             : "the device was last heard before the newest reading of the series";
  }
  return reasons;
}

Json reading_json(const wire::Reading& reading, const std::string& time_reason) {
  Json json = {{"namespace", reading.namespace_name},
               {"device", reading.device},
               {"sensor", reading.sensor}};
  if (reading.time_ns) {
    std::string time;
    wire::append_time(*reading.time_ns, time);
    json["time"] = time;
  }
  json["time_reason"] = time_reason;
  switch (reading.value.type) {
    case wire::ValueType::Float64: json["value"] = reading.value.float64; break;
    case wire::ValueType::Int64:
      json["value"] = reading.value.int64;
      json["type"] = "int";
      break;
    case wire::ValueType::Bool: json["value"] = reading.value.boolean; break;
    case wire::ValueType::Text: json["value"] = reading.value.text; break;
    case wire::ValueType::Bytes: {
      std::string text;
      wire::append_base64(reading.value.text, text);
      json["value"] = text;
      json["type"] = "bytes";
      break;
    }
  }
  return json;
}

Json rule_json(const TopicRule& rule, const Route& route) {
  Json json = {{"number", rule.number}};
  if (rule.line > 0) json["line"] = rule.line;
  json["topic"] = rule.topic;
  if (!rule.preset.empty()) json["preset"] = rule.preset;
  json["template"] = route.topic.text();
  return json;
}

std::string_view outcome_name(DecodeOutcome outcome) {
  if (outcome == DecodeOutcome::Readings) return "readings";
  return outcome == DecodeOutcome::Ignored ? "ignored" : "rejected";
}

// As a configuration has it; as JSON, texts of JSON are texts of TOML.
std::string rule_text(const config::MqttRuleSettings& rule) {
  std::string text = "[[mqtt.rule]]\n";
  if (!rule.preset.empty()) text += "preset = " + Json(rule.preset).dump() + "\n";
  if (!rule.topic.empty()) text += "topic = " + Json(rule.topic).dump() + "\n";
  return text;
}

// A configuration without a rule has one all the same, which its first rule would replace.
Json suggestion_json(const config::MqttRuleSettings& suggested,
                     const std::vector<config::MqttRuleSettings>& rules,
                     const config::LimitSettings& limits, std::string_view topic,
                     std::string_view payload) {
  std::string text = rule_text(suggested);
  if (rules.size() == 1 && rules.front().line == 0) text = rule_text(rules.front()) + "\n" + text;
  Json json = {{"rule", text}, {"readings", Json::array()}};
  const auto compiled = compile_rules({suggested});
  if (!compiled.ok()) return json;
  wire::ReadingBatch batch;
  DecodeResult result = decode_message(*compiled, limits, topic, payload, batch);
  const std::vector<std::string> reasons = judge_times(result, limits.time_ahead, nullptr, batch);
  for (std::size_t i = 0; i < batch.readings.size(); ++i)
    json["readings"].push_back(reading_json(batch.readings[i], reasons[i]));
  return json;
}

}  // namespace

Result<std::string> mqtt_test_json(const std::vector<config::MqttRuleSettings>& rules,
                                   const config::LimitSettings& limits,
                                   ingest::IngestPipeline* pipeline, std::string_view topic,
                                   std::string_view payload) {
  if (topic.find_first_of("+#") != std::string_view::npos)
    return invalid_argument("no message has the topic " + std::string(topic) +
                            ": + and # are of filters, which stand for many topics");
  EC_ASSIGN_OR_RETURN(const std::vector<TopicRule> compiled, compile_rules(rules));
  wire::ReadingBatch batch;
  DecodeResult result = decode_message(compiled, limits, topic, payload, batch);
  // As the pipeline would.
  for (const wire::Reading& reading : batch.readings) {
    if (!reading.namespace_name.starts_with('_')) continue;
    result.reason = "namespace " + std::string(reading.namespace_name) +
                    ": names that begin with _ are the store's own";
    result.outcome = DecodeOutcome::Rejected;
    batch.clear();
    break;
  }
  Json json = {{"outcome", outcome_name(result.outcome)}};
  if (!result.reason.empty()) json["reason"] = result.reason;
  if (result.rule != nullptr) json["rule"] = rule_json(*result.rule, *result.route);
  if (result.skipped > 0) json["skipped"] = result.skipped;
  json["readings"] = Json::array();
  const std::vector<std::string> reasons = judge_times(result, limits.time_ahead, pipeline, batch);
  for (std::size_t i = 0; i < batch.readings.size(); ++i) {
    json["readings"].push_back(reading_json(batch.readings[i], reasons[i]));
  }
  if (result.rule == nullptr) {
    if (const auto suggested = suggested_rule(limits, topic, payload))
      json["suggestion"] = suggestion_json(*suggested, rules, limits, topic, payload);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

// Whether a configuration of this rule alone makes readings of the message.
bool makes_readings(const config::MqttRuleSettings& rule, const config::LimitSettings& limits,
                    std::string_view topic, std::string_view payload) {
  const auto compiled = compile_rules({rule});
  if (!compiled.ok()) return false;
  wire::ReadingBatch batch;
  const DecodeResult result = decode_message(*compiled, limits, topic, payload, batch);
  return result.outcome == DecodeOutcome::Readings && !result.route->fallback;
}

// Levels that say that a message comes, not what of.
bool is_of_every_device(std::string_view level) {
  constexpr std::array<std::string_view, 14> kWords = {
      "state", "status", "telemetry", "data",    "value", "values", "json",
      "up",    "uplink", "sensor",    "sensors", "event", "events", "attributes"};
  std::string lower(level);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

// `topic` with placeholders for its last levels, but for one that every device has.
std::string own_template(std::string_view topic, bool is_object) {
  std::vector<std::string_view> levels;
  for (std::size_t begin = 0; begin <= topic.size();) {
    const std::size_t end = std::min(topic.find('/', begin), topic.size());
    levels.push_back(topic.substr(begin, end - begin));
    begin = end + 1;
  }
  std::size_t at = levels.size();
  if (at > 1 && is_of_every_device(levels.back())) --at;
  if (!is_object && at > 1) levels[--at] = "{sensor}";
  levels[--at] = "{device}";
  std::string text(levels.front());
  for (std::size_t i = 1; i < levels.size(); ++i) text.append("/").append(levels[i]);
  return text;
}

}  // namespace

std::optional<config::MqttRuleSettings> suggested_rule(const config::LimitSettings& limits,
                                                       std::string_view topic,
                                                       std::string_view payload) {
  config::MqttRuleSettings rule;
  for (const std::string_view name : preset_names()) {
    rule.preset = name;
    if (makes_readings(rule, limits, topic, payload)) return rule;
  }
  rule.preset.clear();
  const std::size_t first = payload.find_first_not_of(" \t\r\n");
  rule.topic = own_template(topic, first != std::string_view::npos && payload[first] == '{');
  if (makes_readings(rule, limits, topic, payload)) return rule;
  return std::nullopt;
}

}  // namespace edgecase::mqtt
