#include "mqtt/mqtt_test.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("mqtt test: says which rule and which readings") {
  config::MqttRuleSettings rule;
  rule.topic = "s/{device}";
  rule.time = "/ts";
  rule.line = 7;
  const auto text = [&rule](std::string_view topic, std::string_view payload) {
    const auto json = mqtt::mqtt_test_json({rule}, {}, topic, payload);
    return json.ok() ? *json : json.status().message();
  };
  CHECK(text("s/k", R"({"t":21.5,"ts":0,"n":null})") ==
        R"({"outcome":"readings","rule":{"number":1,"line":7,"topic":"s/{device}",)"
        R"("template":"s/{device}"},"skipped":1,"readings":[{"namespace":"default",)"
        R"("device":"k","sensor":"t","time":"1970-01-01T00:00:00.000000000Z","value":21.5}]})");
  CHECK(text("s/k", "\xff") ==
        R"({"outcome":"readings","rule":{"number":1,"line":7,"topic":"s/{device}",)"
        R"("template":"s/{device}"},"readings":[{"namespace":"default","device":"k",)"
        R"("sensor":"value","value":"/w==","type":"bytes"}]})");
  CHECK(text("t/k", "1") ==
        R"({"outcome":"rejected","reason":"no rule takes this topic","readings":[]})");
  rule.topic = "n/{namespace}/{device}";
  CHECK(text("n/_own/k", "1")
            .starts_with(
                R"({"outcome":"rejected","reason":"namespace _own: names that begin with _ are)"));
  rule.topic = "s/{";
  CHECK(text("s/k", "1").substr(0, 27) == "mqtt.rule 1 (line 7): topic");
}
