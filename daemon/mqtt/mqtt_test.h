// `edgecase mqtt test TOPIC PAYLOAD`: which rule takes a message and which readings it would make.
// Needs the configuration only; nothing is stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "edgecase/status.h"
#include "ingest/ingest_pipeline.h"

namespace edgecase::mqtt {

// One JSON object:
//   {"outcome":"readings"|"ignored"|"rejected", "reason"?,
//    "rule"?: {"number","line"?,"topic","preset"?,"template"}, "skipped"?,
//    "readings":[{"namespace","device","sensor","time"?,"time_reason","value","type"?}, …]}
// Bytes are base64 with "type":"bytes". Without "time" the time of arrival would be taken;
// "time_reason" says why the one or the other. `pipeline` judges times; null: the message's own
// counts. InvalidArgument: the rules do not compile.
Result<std::string> mqtt_test_json(const std::vector<config::MqttRuleSettings>& rules,
                                   const config::LimitSettings& limits,
                                   ingest::IngestPipeline* pipeline, std::string_view topic,
                                   std::string_view payload);

}  // namespace edgecase::mqtt
