#include <limits>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/topic_rule.h"

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

using mqtt::TimeFormat;

TEST_CASE("message time: exact in every format") {
  struct Case {
    const char* text;
    TimeFormat format;
    std::int64_t want;
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  for (const Case& c : {
           Case{"1594598424.5023336", TimeFormat::Unix, 1'594'598'424'502'333'600},
           Case{"1594598424.5023336", TimeFormat::Auto, 1'594'598'424'502'333'600},
           Case{"1594598424", TimeFormat::Auto, 1'594'598'424 * kSecond},
           Case{"1594598424502", TimeFormat::Auto, 1'594'598'424'502'000'000},
           Case{"1594598424502333", TimeFormat::Auto, 1'594'598'424'502'333'000},
           Case{"1594598424502333600", TimeFormat::Auto, 1'594'598'424'502'333'600},
           Case{"9007199254740993", TimeFormat::UnixNs, 9'007'199'254'740'993},
           Case{"9223372036854775807", TimeFormat::UnixNs,
                std::numeric_limits<std::int64_t>::max()},
           Case{"-9223372036854775808", TimeFormat::UnixNs,
                std::numeric_limits<std::int64_t>::min()},
           Case{"1.5e3", TimeFormat::Unix, 1'500 * kSecond},
           Case{"0", TimeFormat::Auto, 0},
           Case{"-1.25", TimeFormat::Unix, -1'250'000'000},
           Case{"0.0000000019", TimeFormat::Unix, 1},
           Case{"1.5", TimeFormat::UnixMs, 1'500'000},
           Case{"2026-11-20T14:00:00Z", TimeFormat::Rfc3339, 1'795'183'200 * kSecond},
           Case{"2026-11-20T15:00:00+01:00", TimeFormat::Auto, 1'795'183'200 * kSecond},
           Case{"2026-11-20T15:00:00.250+0100", TimeFormat::Auto,
                1'795'183'200 * kSecond + 250'000'000},
           Case{"2026-11-20T15:00:00,250+01", TimeFormat::Auto,
                1'795'183'200 * kSecond + 250'000'000},
           Case{"2026-11-20T14:00Z", TimeFormat::Auto, 1'795'183'200 * kSecond},
           Case{"2026-11-20T14:00:00.1234567899Z", TimeFormat::Auto,
                1'795'183'200 * kSecond + 123'456'789},
           Case{"2026-11-20 08:30:00-05:30", TimeFormat::Auto, 1'795'183'200 * kSecond},
           Case{"2026-11-20T14:00:00.123456789Z", TimeFormat::Auto,
                1'795'183'200 * kSecond + 123'456'789},
           Case{"1969-12-31T23:59:59.5Z", TimeFormat::Auto, -500'000'000},
           Case{"2024-02-29T00:00:00Z", TimeFormat::Auto, 1'709'164'800 * kSecond},
       }) {
    CAPTURE(c.text);
    const auto got = mqtt::parse_message_time_ns(c.text, c.format);
    REQUIRE(got.ok());
    CHECK(*got == c.want);
  }
}

TEST_CASE("message time: refuses what is no time") {
  struct Case {
    const char* text;
    TimeFormat format = TimeFormat::Auto;
  };
  for (const Case& c :
       {Case{""}, Case{"yesterday"}, Case{"2026-11-20"}, Case{"2026-11-20T14:00:00"},
        Case{"2026-13-20T14:00:00Z"}, Case{"2026-02-29T14:00:00Z"}, Case{"2026-11-20T24:00:00Z"},
        Case{"2026-11-20T14:00:00.Z"}, Case{"2026-11-20T14:00:00Zx"}, Case{"9999-01-01T00:00:00Z"},
        Case{"1e30"}, Case{"9223372036854775808", TimeFormat::UnixNs},
        Case{"2026-11-20T14:00:00Z", TimeFormat::Unix}, Case{"1594598424", TimeFormat::Rfc3339},
        Case{"1.2.3"}, Case{"1e"}, Case{"--1"}}) {
    CAPTURE(c.text);
    CHECK(!mqtt::parse_message_time_ns(c.text, c.format).ok());
  }
  CHECK(mqtt::is_time_without_offset("2026-11-20T14:00:00"));
  CHECK(!mqtt::is_time_without_offset("2026-11-20T14:00:00Z"));
}
