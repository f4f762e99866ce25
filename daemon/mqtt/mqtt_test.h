// `edgecase mqtt test TOPIC PAYLOAD`: which rule takes a message and which readings it would make.
// Needs the configuration only; nothing is stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "edgecase/result.h"

namespace edgecase::mqtt {

// One JSON object:
//   {"outcome":"readings"|"ignored"|"rejected", "reason"?,
//    "rule"?: {"number","line"?,"topic","preset"?,"template"}, "skipped"?,
//    "readings":[{"namespace","device","sensor","time"?,"value","type"?}, …]}
// Bytes are base64 with "type":"bytes". Without "time" the time of arrival would be taken.
// InvalidArgument: the rules do not compile.
Result<std::string> mqtt_test_json(const std::vector<config::MqttRuleSettings>& rules,
                                   const config::LimitSettings& limits, std::string_view topic,
                                   std::string_view payload);

}  // namespace edgecase::mqtt
