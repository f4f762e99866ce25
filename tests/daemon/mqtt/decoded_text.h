// Prints what a message decodes to, as one line of text, for tables in tests: "kitchen/temp=21.5
// kitchen/on=true @1594598424502333600", "ignored: …", "rejected: …". A namespace other than
// `default` stands before the device: "plant:kitchen/temp=1".
#pragma once

#include <string>
#include <string_view>

#include "config/settings.h"
#include "mqtt/payload_decoder.h"
#include "wire/reading_format.h"

namespace edgecase::test {

inline std::string decoded_text(const std::vector<mqtt::TopicRule>& rules, std::string_view topic,
                                std::string_view payload,
                                const config::LimitSettings& limits = {}) {
  wire::ReadingBatch batch;
  const auto result = mqtt::decode_message(rules, limits, topic, payload, batch);
  if (result.outcome == mqtt::DecodeOutcome::Ignored) return "ignored: " + result.reason;
  if (result.outcome == mqtt::DecodeOutcome::Rejected) return "rejected: " + result.reason;
  std::string text;
  for (const wire::Reading& reading : batch.readings) {
    if (!text.empty()) text += ' ';
    if (reading.namespace_name != wire::kDefaultNamespace) {
      text += std::string(reading.namespace_name) + ":";
    }
    text += std::string(reading.device) + "/" + std::string(reading.sensor) + "=";
    switch (reading.value.type) {
      case wire::ValueType::Float64: wire::append_double(reading.value.float64, text); break;
      case wire::ValueType::Int64: text += std::to_string(reading.value.int64) + "i"; break;
      case wire::ValueType::Bool: text += reading.value.boolean ? "true" : "false"; break;
      case wire::ValueType::Text: wire::append_json_string(reading.value.text, text); break;
      case wire::ValueType::Bytes:
        text += "bytes(" + std::to_string(reading.value.text.size()) + ")";
        break;
    }
  }
  const auto& first = batch.readings.front();
  if (first.time_ns) text += " @" + std::to_string(*first.time_ns);
  if (!result.time_problem.empty()) text += " on arrival: " + result.time_problem;
  return text;
}

inline std::string decoded_text(const config::MqttRuleSettings& rule, std::string_view topic,
                                std::string_view payload,
                                const config::LimitSettings& limits = {}) {
  const auto compiled = mqtt::compile_rules({rule});
  if (!compiled.ok()) return "no rule: " + compiled.status().message();
  return decoded_text(*compiled, topic, payload, limits);
}

}  // namespace edgecase::test
