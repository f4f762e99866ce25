#include "mqtt/topic_rule.h"

#include <doctest/doctest.h>

using namespace edgecase;

namespace {

config::MqttRuleSettings rule_with(const char* topic, const char* preset = "") {
  config::MqttRuleSettings rule;
  rule.topic = topic;
  rule.preset = preset;
  return rule;
}

}  // namespace

TEST_CASE("topic rule: errors name the rule, its line and the key") {
  struct Case {
    config::MqttRuleSettings rule;
    const char* want;
  };
  std::vector<Case> cases;
  const auto add = [&cases](config::MqttRuleSettings rule, const char* want) {
    cases.push_back({std::move(rule), want});
  };
  add(rule_with("a/{device"), "topic: level \"{device\"");
  add(rule_with(""), "topic: is empty");
  add(rule_with("a/{sensor}"), "no device: ");
  add(rule_with("a/{device}", "tasmotta"), "preset: \"tasmotta\": one of zigbee2mqtt, tasmota");
  add(rule_with("a/{", "tasmota"), "topic: level");
  auto rule = rule_with("a/{device}");
  rule.payload = "xml";
  add(rule, "payload: \"xml\": one of auto, ");
  rule = rule_with("a/{device}");
  rule.qos = 2;
  add(rule, "qos: 2 would be acknowledged before");
  rule.qos = 3;
  add(rule, "qos: 0 or 1");
  rule = rule_with("a/{device}");
  rule.time = "ts";
  add(rule, "time: a JSON pointer looks like");
  rule.time = "/a~2";
  add(rule, "time: `~` in a JSON pointer");
  rule.time = "/ts";
  rule.time_format = "iso";
  add(rule, "time-format: \"iso\": one of auto, rfc3339");
  rule = {};
  rule.topic = "a/{device}";
  rule.time_zone = "Mars/Base";
  add(rule, "time-zone: \"Mars/Base\" is no time zone of this machine");
  rule = {};
  rule.topic = "a/{device}";
  rule.records = "metrics";
  add(rule, "records: a JSON pointer looks like");
  rule.records = "/metrics";
  rule.payload = "text";
  add(rule, "records: needs payload auto or json");
  rule.payload = "auto";
  rule.topic = "";
  rule.preset = "ttn";
  add(rule, "records: a preset has its own");
  rule = rule_with("a/+");
  rule.device = "{device}";
  add(rule, "device: {device} is not in the topic");
  rule.device = "a\nb";
  add(rule, "device: ");
  rule.device = "/id";
  rule.payload = "number";
  add(rule, "device: a JSON pointer needs payload auto or json");
  rule = rule_with("a/{device}");
  rule.namespace_name = "_catalog";
  add(rule, "namespace: names beginning with `_`");
  rule.namespace_name = "/ns";
  add(rule, "namespace: takes a name");
  for (Case& c : cases) {
    CAPTURE(c.want);
    c.rule.line = 14;
    const auto compiled = mqtt::compile_rules({rule_with("ok/{device}"), c.rule});
    REQUIRE(!compiled.ok());
    CHECK(compiled.status().code() == StatusCode::InvalidArgument);
    const std::string want = std::string("mqtt.rule 2 (line 14): ") + c.want;
    CHECK(compiled.status().message().substr(0, want.size()) == want);
  }
}

TEST_CASE("topic rule: the first that matches is used") {
  const auto rules = mqtt::compile_rules(
      {rule_with("a/{device}/temp"), rule_with("a/{device}/{sensor}"), rule_with("a/{device+}")});
  REQUIRE(rules.ok());
  struct Case {
    const char* topic;
    std::size_t number;  // 0: none
  };
  for (const Case& c : {Case{"a/x/temp", 1}, Case{"a/x/hum", 2}, Case{"a/x/y/z", 3}, Case{"a", 0},
                        Case{"b/x/temp", 0}, Case{"$SYS/a", 0}}) {
    CAPTURE(c.topic);
    const auto match = mqtt::find_route(*rules, c.topic);
    REQUIRE(match.has_value() == (c.number != 0));
    if (match) CHECK(match->rule->number == c.number);
  }
}

TEST_CASE("topic rule: subscriptions leave out what another one brings") {
  auto zero = rule_with("a/{device}");
  zero.qos = 0;
  const auto rules = mqtt::compile_rules({zero, rule_with("b/{device}/{sensor}"),
                                          rule_with("a/{device+}"), rule_with("b/{device}/temp")});
  REQUIRE(rules.ok());
  const auto subscriptions = mqtt::subscriptions_of(*rules);
  REQUIRE(subscriptions.size() == 2);
  CHECK(subscriptions[0].filter == "b/+/+");
  CHECK(subscriptions[1].filter == "a/+/#");
  CHECK(subscriptions[1].qos == 1);
}
