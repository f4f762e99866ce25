// Rules tried on one message, with nothing stored: which of them takes it and what they would make
// of it (mqtt_test_json), and a rule that would do where none does (suggested_rule). Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "edgecase/status.h"
#include "ingest/ingest_pipeline.h"

namespace edgecase::mqtt {

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
