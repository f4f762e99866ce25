#include "mqtt/payload_decoder.h"

#include <doctest/doctest.h>

#include "daemon/mqtt/decoded_text.h"

using namespace edgecase;
using test::decoded_text;

namespace {

struct Case {
  std::string payload;
  std::string want;
};

config::MqttRuleSettings rule_of(const char* topic, const char* payload = "auto") {
  config::MqttRuleSettings rule;
  rule.topic = topic;
  rule.payload = payload;
  return rule;
}

void check_all(const config::MqttRuleSettings& rule, const char* topic,
               const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CAPTURE(c.payload);
    CHECK(decoded_text(rule, topic, c.payload) == c.want);
  }
}

}  // namespace

TEST_CASE("payload auto: numbers, bools, JSON, text, bytes") {
  check_all(rule_of("s/{device}/{sensor}"), "s/k/t",
            {{"21.5", "k/t=21.5"},
             {" 21.5\n", "k/t=21.5"},
             {"-1e3", "k/t=-1000"},
             {"1e-400", "k/t=0"},
             {"9007199254740993", "k/t=9007199254740992"},
             {"1e400", R"(rejected: "1e400" is too large for a float of 64 bits)"},
             {"true", "k/t=true"},
             {"false\r\n", "k/t=false"},
             {"True", "k/t=\"True\""},
             {"007", "k/t=7"},
             {"+5", "k/t=5"},
             {"0x10", "k/t=\"0x10\""},
             {"nan", "ignored: no value in it"},
             {"null", "ignored: no value in it"},
             {" on\r\n", "k/t=\"on\""},
             {"\xEF\xBB\xBFon", "k/t=\"on\""},
             {std::string("on\0", 3), "k/t=\"on\""},
             {std::string("{\"a\":1}\r\n\0", 10), "k/t.a=1"},
             {" \r\n", "ignored: no value in it"},
             {"\"on\"", R"(k/t="\"on\"")"},
             {"caf\xc3\xa9", "k/t=\"caf\xc3\xa9\""},
             {std::string("\xff\xd8\x00\x01", 4), "k/t=bytes(4)"},
             {"", "ignored: empty payload"},
             {"{}", "ignored: no value in it"},
             {"{\"a\":null}", "ignored: no value in it"},
             {"{\"a\":1,\"b\":{\"c\":true,\"d\":[\"x\",2]}}",
              "k/t.a=1 k/t.b.c=true k/t.b.d.0=\"x\" k/t.b.d.1=2"},
             {"[1,2.5]", "k/t.0=1 k/t.1=2.5"},
             {"[INFO] started", "k/t=\"[INFO] started\""},
             {"[INFO]", "k/t=\"[INFO]\""},
             {"[1, abc]", "k/t=\"[1, abc]\""},
             {"[1, nan]", "k/t.0=1"},
             {"{\"a\":1", "rejected: not JSON: wrong at byte 7"},
             {"{\"a\":\"\xff\"}", "rejected: not JSON: wrong at byte 7"},
             {"{\"a\":1,\"b\":null}", "k/t.a=1"},
             {"{\"a\":1,\"b\":2,\"a\":3}", "k/t.a=1 k/t.b=2 k/t.a~2=3"},
             {"{\"a.b\":1,\"a\":{\"b\":2}}", "k/t.a.b=1 k/t.a.b~2=2"},
             {"{\"a\":1,\"a\":2,\"a~2\":3,\"a\":4}", "k/t.a=1 k/t.a~3=2 k/t.a~2=3 k/t.a~4=4"},
             {"{\"a\":nan,\"b\":,\"c\":-inf,\"d\":+5,\"e\":.5}", "k/t.d=5 k/t.e=0.5"},
             {"{\"a\":0x1F,\"b\":1e400,\"c\":5 C,\"d\":1_0,\"e\":6}", "k/t.e=6"},
             {"{\"a\":0x1F}",
              R"(rejected: left out: /a: "0x1F" is no decimal number: it is hexadecimal)"},
             {"{\"x/y\":1}", "k/t.x.y=1"}});
}

TEST_CASE("payload: the declared kinds take only what they say") {
  check_all(rule_of("s/{device}", "number"), "s/k",
            {{"007", "k/value=7"},
             {"+.5", "k/value=0.5"},
             {"5.", "k/value=5"},
             {"1.5 C", R"(rejected: "1.5 C" is no decimal number: there is something behind it)"},
             {"inf", "ignored: no value in it"},
             {"{\"a\":1}", R"(rejected: "{"a":1}" is no decimal number)"}});
  check_all(rule_of("s/{device}", "text"), "s/k",
            {{" 21.5\n", R"(k/value=" 21.5\n")"}, {"\xff", "rejected: payload is not UTF-8"}});
  check_all(rule_of("s/{device}", "bytes"), "s/k", {{"21.5", "k/value=bytes(4)"}});
  check_all(rule_of("s/{device}", "json"), "s/k",
            {{"\"on\"", "k/value=\"on\""},
             {"3", "k/value=3"},
             {"null", "ignored: no value in it"},
             {"on", "rejected: not JSON: wrong at byte 1"}});
}

TEST_CASE("payload: names and time out of JSON") {
  auto rule = rule_of("env");
  rule.device = "/device";
  rule.time = "/ts";
  check_all(
      rule, "env",
      {{R"({"data":{"t":21.6,"on":false},"device_id":"f3:6b",)"
        R"("ts":1594598424.7576046,"device":"d3"})",
        "d3/data.t=21.6 d3/data.on=false d3/device_id=\"f3:6b\" @1594598424757604600"},
       {R"({"t":1,"device":7})", "7/t=1"},
       {R"({"t":1,"device":"d","ts":null})", "d/t=1"},
       {R"({"t":1,"device":"d","ts":"2026-11-20T14:00:00Z"})", "d/t=1 @1795183200000000000"},
       {R"({"t":1,"device":"d","ts":"soon"})",
        "d/t=1 on arrival: time \"soon\" is not RFC 3339, like 2026-11-20T14:00:00Z"},
       {R"({"t":1,"device":"d","ts":true})", "d/t=1 on arrival: time at /ts is a bool"},
       {R"({"t":1})", "rejected: no text or number at /device"},
       {R"({"t":1,"device":true})", "rejected: no text or number at /device"},
       {"21.5", "rejected: no JSON to take the device from /device"},
       {R"({"t":1,"device":"a/b"})", decoded_text(rule, "env", R"({"t":1,"device":"a/b"})")}});
  CHECK(decoded_text(rule, "env", R"({"t":1,"device":"a/b"})").substr(0, 9) == "rejected:");
  CHECK(decoded_text(rule, "env", R"({"t":1,"device":""})").substr(0, 9) == "rejected:");

  rule = rule_of("plant/{namespace}/+/{sensor}");
  rule.device = "line-{3}";
  CHECK(decoded_text(rule, "plant/hall/7/temp", "3") == "hall:line-7/temp=3");
  rule.namespace_name = "all";
  rule.sensor = "/kind";
  CHECK(decoded_text(rule, "plant/hall/7/temp", R"({"kind":"hum","v":3})") == "all:line-7/hum.v=3");
  rule.time = "/at";
  rule.time_format = "unix_ms";
  CHECK(decoded_text(rule, "plant/hall/7/temp", R"({"kind":"hum","v":3,"at":1500})") ==
        "all:line-7/hum.v=3 @1500000000");
}

TEST_CASE("payload: records that carry their own times") {
  auto rule = rule_of("t/{device}", "json");
  rule.records = "/metrics";
  rule.time = "/timestamp";
  rule.device = "/tags/host";
  rule.sensor = "/name";
  check_all(rule, "t/x",
            {{R"({"metrics":[{"fields":{"load1":1.5,"n_cpus":2},"name":"system",)"
              R"("tags":{"host":"pi"},"timestamp":1795183200},{"fields":{"used":7},"name":"mem",)"
              R"("tags":{"host":"nas"},"timestamp":1795183210}]})",
              "pi/system.fields.load1=1.5 pi/system.fields.n_cpus=2 nas/mem.fields.used=7 "
              "@1795183200000000000"},
             // Two records of one name and one time are both kept.
             {R"({"metrics":[{"v":1,"name":"cpu","tags":{"host":"pi"},"timestamp":5},)"
              R"({"v":2,"name":"cpu","tags":{"host":"pi"},"timestamp":5},)"
              R"({"v":3,"name":"cpu","tags":{"host":"pi"},"timestamp":6}]})",
              "pi/cpu.v=1 pi/cpu.v~2=2 pi/cpu.v=3 @5000000000"},
             // One that is no record costs itself alone.
             {R"({"metrics":[{"v":1,"name":"cpu","timestamp":5},7,)"
              R"({"v":2,"name":"cpu","tags":{"host":"pi"},"timestamp":5}]})",
              "pi/cpu.v=2 @5000000000"},
             {R"({"metrics":[{"v":1,"name":"cpu","timestamp":5}]})",
              "rejected: left out: /metrics/0: no text or number at /tags/host"},
             {R"({"metrics":[]})", "ignored: no value in it"}});

  // The message is the array; times of one's own zone; what lies beside is stored as ever.
  rule = rule_of("t/{device}");
  rule.records = "/";
  rule.time = "/at";
  rule.time_zone = "+01:00";
  check_all(rule, "t/x",
            {{R"([{"at":"2026-11-20T15:00:00","t":1},{"at":"2026-11-20 15:00:10","t":2}])",
              "x/t=1 x/t=2 @1795183200000000000"},
             {R"([{"t":1},{"t":2},5])", "x/t=1 x/t=2 x/value=5"}});
  rule.records = "/datalog";
  check_all(rule, "t/x",
            {{R"({"Bat":3.6,"at":"2026-11-20T15:00:00Z","datalog":[{"at":5,"t":1},{"t":2}]})",
              "x/t=1 x/t=2 x/Bat=3.6 @5000000000"}});

  const auto rules = mqtt::compile_rules({rule});
  REQUIRE(rules.ok());
  wire::ReadingBatch batch;
  const auto result = mqtt::decode_message(
      *rules, {}, "t/x", R"({"datalog":[{"at":5,"t":1},{"at":"2026-11-20T15:00:00","t":2}]})",
      batch);
  CHECK(result.records == 2);
  REQUIRE(batch.readings.size() == 2);
  CHECK(batch.readings[0].time_ns == 5'000'000'000);
  CHECK(batch.readings[1].time_ns == 1'795'183'200'000'000'000);
}

TEST_CASE("payload: limits and names are checked, nothing half is stored") {
  const auto rule = rule_of("s/{device}");
  config::LimitSettings limits;
  limits.json_depth = 2;
  limits.json_leaves = 2;
  limits.message_limit_bytes = 30;
  CHECK(decoded_text(rule, "s/k", R"({"a":{"b":{}}})", limits) ==
        "rejected: JSON is nested over limits.json-depth = 2");
  CHECK(decoded_text(rule, "s/k", R"({"a":[1,2,3]})", limits) ==
        "rejected: more values than limits.json-leaves = 2");
  CHECK(decoded_text(rule, "s/k", std::string(31, 'x'), limits) ==
        "rejected: payload of 31 bytes is over limits.message-limit = 30");
  CHECK(decoded_text(rule, "s/" + std::string(257, 'd'), "1").substr(0, 9) == "rejected:");
  CHECK(decoded_text(rule, "s/k", R"({"ok":1,"a\nb":2})").substr(0, 9) == "rejected:");
  CHECK(decoded_text(rule, "s/k\x01", "1").substr(0, 9) == "rejected:");
  CHECK(decoded_text(rule, "t/k", "1") == "rejected: no rule takes this topic");
}

TEST_CASE("payload: a rejected message leaves the batch as it was") {
  const auto rules = mqtt::compile_rules({rule_of("s/{device}")});
  REQUIRE(rules.ok());
  wire::ReadingBatch batch;
  CHECK(mqtt::decode_message(*rules, {}, "s/k", "1", batch).outcome ==
        mqtt::DecodeOutcome::Readings);
  const auto result = mqtt::decode_message(*rules, {}, "s/k", R"({"ok":1,"a\nb":2})", batch);
  CHECK(result.outcome == mqtt::DecodeOutcome::Rejected);
  CHECK(result.rule == &rules->front());
  CHECK(batch.readings.size() == 1);
}
