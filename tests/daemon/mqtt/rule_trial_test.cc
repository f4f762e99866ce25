#include <limits>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/payload_decoder.h"

using namespace edgecase;

TEST_CASE("mqtt test: says which rule and which readings") {
  config::MqttRuleSettings rule;
  rule.topic = "s/{device}";
  rule.time = "/ts";
  rule.line = 7;
  const auto text = [&rule](std::string_view topic, std::string_view payload) {
    const auto json = mqtt::mqtt_test_json({rule}, {}, nullptr, topic, payload);
    return json.ok() ? *json : json.status().message();
  };
  CHECK(text("s/k", R"({"t":21.5,"ts":0,"n":null})") ==
        R"({"outcome":"readings","rule":{"number":1,"line":7,"topic":"s/{device}",)"
        R"("template":"s/{device}"},"skipped":1,"readings":[{"namespace":"default",)"
        R"("device":"k","sensor":"t","time":"1970-01-01T00:00:00.000000000Z",)"
        R"("time_reason":"the message says it","value":21.5}]})");
  CHECK(text("s/k", "\xff") ==
        R"({"outcome":"readings","rule":{"number":1,"line":7,"topic":"s/{device}",)"
        R"("template":"s/{device}"},"readings":[{"namespace":"default","device":"k",)"
        R"("sensor":"value","time_reason":"the message says none","value":"/w==",)"
        R"("type":"bytes"}]})");
  CHECK(text("t/k", "1") ==
        R"({"outcome":"rejected","reason":"no rule takes this topic","readings":[],"suggestion":)"
        R"({"rule":"[[mqtt.rule]]\ntopic = \"{device}/{sensor}\"\n","readings":[{"namespace":)"
        R"("default","device":"t","sensor":"k","time_reason":"the message says none",)"
        R"("value":1.0}]}})");
  CHECK(text("t/+", "1").starts_with("no message has the topic t/+"));
  rule.topic = "n/{namespace}/{device}";
  CHECK(text("n/_own/k", "1")
            .starts_with(
                R"({"outcome":"rejected","reason":"namespace _own: names that begin with _ are)"));
  rule.topic = "s/{";
  CHECK(text("s/k", "1").substr(0, 27) == "mqtt.rule 1 (line 7): topic");
}

TEST_CASE("mqtt test: says which time counts, and why") {
  test::MqttFixture fixture;
  config::MqttRuleSettings rule;
  rule.topic = "s/{device}";
  rule.time = "/last_seen";
  const auto reason = [&](const std::string& time) {
    const auto json = mqtt::mqtt_test_json({rule}, {}, fixture.pipeline.get(), "s/k",
                                           "{\"t\":21.5,\"last_seen\":" + time + "}");
    REQUIRE(json.ok());
    const auto reading = nlohmann::json::parse(*json)["readings"][0];
    return std::string(reading.contains("time") ? "own: " : "arrival: ") +
           reading["time_reason"].get<std::string>();
  };
  CHECK(reason("1763647200000") ==
        "own: the device was last heard then, and its series has nothing newer");
  CHECK(reason("null") == "arrival: the message says none");
  CHECK(reason("true") == "arrival: time at /last_seen is a bool");
  CHECK(reason("4711") ==
        "arrival: 1970-01-01T01:18:31.000000000Z, which the message says, is before 2000: of a "
        "clock that was never set");
  CHECK(reason("6763647200000") ==
        "arrival: 2184-04-30T22:53:20.000000000Z, which the message says, is later than the clock "
        "by more than limits.time-ahead = 1d");
  wire::ReadingBatch batch;
  batch.readings = {{"default", "k", "t", 1'763'647'200'000'000'000, wire::Value::of_float64(1)}};
  const auth::Principal somebody{auth::PrincipalKind::LocalSocket, "test"};
  REQUIRE(fixture.pipeline->ingest(*auth::authorize_write(somebody, batch)).ok());
  CHECK(reason("1763647200000") ==
        "arrival: the series has another value of the time that the message says");
  CHECK(reason("1763647100000") ==
        "arrival: the device was last heard before the newest reading of the series");
}

TEST_CASE("a message that no rule takes leads to a rule that does") {
  struct Case {
    const char* topic;
    const char* payload;
    const char* preset;
    const char* own_topic;
  };
  for (const Case& c : {
           Case{"plant/press/temp", "21.5", "", "plant/{device}/{sensor}"},
           Case{"plant/press/temp", "warm", "", "plant/{device}/{sensor}"},
           Case{"plant/press", R"({"t":1})", "", "plant/{device}"},
           Case{"plant/press/STATUS", R"( {"t":1})", "", "plant/{device}/STATUS"},
           Case{"plant/press/temp/value", "3", "", "plant/{device}/{sensor}/value"},
           Case{"press/value", "3", "", "{device}/value"},
           Case{"temp", "3", "", "{device}"},
           Case{"/a/b", "3", "", "/{device}/{sensor}"},
           Case{"$share-not/a/b", "3", "", "$share-not/{device}/{sensor}"},
           Case{"tele/bad/SENSOR", R"({"Time":"2026-11-30T12:00:00","SI":{"T":21.4}})", "tasmota",
                ""},
           Case{"zigbee2mqtt/lamp", R"({"brightness":3})", "zigbee2mqtt", ""},
           Case{"porch/sensor/t/state", "7.4", "esphome", ""},
       }) {
    CAPTURE(c.topic);
    const auto rule = mqtt::suggested_rule({}, c.topic, c.payload);
    REQUIRE(rule.has_value());
    CHECK(rule->preset == c.preset);
    CHECK(rule->topic == c.own_topic);
  }
  // No reading is made of nothing, and an empty level is no name.
  CHECK_FALSE(mqtt::suggested_rule({}, "plant/press/temp", "").has_value());
  CHECK_FALSE(mqtt::suggested_rule({}, "plant/press/", "3").has_value());
  CHECK_FALSE(mqtt::suggested_rule({}, "plant/press", "{\"t\":").has_value());
}
