#include <doctest/doctest.h>

#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/mqtt_source.h"
#include "mqtt/topic_names.h"

using namespace edgecase;
using mqtt::TopicMatch;
using mqtt::TopicTemplate;

TEST_CASE("topic template: reads names out of topics") {
  struct Case {
    const char* text;
    const char* topic;
    const char* device;  // null: no match
    const char* sensor = "";
    const char* space = "";
  };
  for (const Case& c : {
           Case{"sensors/{device}/{sensor}", "sensors/kitchen/temp", "kitchen", "temp"},
           Case{"sensors/{device}/{sensor}", "sensors/kitchen", nullptr},
           Case{"sensors/{device}/{sensor}", "sensors/kitchen/temp/raw", nullptr},
           Case{"sensors/{device}/{sensor}", "sensors//temp", nullptr},
           Case{"sensors/{device}/{sensor}", "Sensors/kitchen/temp", nullptr},
           Case{"{namespace}/{device}/{sensor}", "plant/a b/x:y", "a b", "x:y", "plant"},
           Case{"+/{device}/#", "any/boiler", "boiler"},
           Case{"+/{device}/#", "any/boiler/a/b", "boiler"},
           Case{"+/{device}/#", "any", nullptr},
           Case{"z/{device+}", "z/kitchen/light", "kitchen.light"},
           Case{"z/{device+}", "z", nullptr},
           Case{"z/{device+}", "z/", nullptr},
           Case{"z/{device+}", "z/a//b", nullptr},
           Case{"{device+}/{sensor}", "a/b/c", "a.b", "c"},
           Case{"{device+}/{sensor}", "a", nullptr},
           Case{"a/{device+}/t/{sensor}", "a/b/c/t/x", "b.c", "x"},
           Case{"a/{device+}/t/{sensor}", "a/b/c/u/x", nullptr},
           Case{"s/{device}/{sensor+}", "s/d/relay/0/power", "d", "relay.0.power"},
           Case{"rack/dev-{device}.v1/t", "rack/dev-7.v1/t", "7"},
           Case{"rack/dev-{device}.v1/t", "rack/dev-.v1/t", nullptr},
           Case{"rack/dev-{device}", "rack/7", nullptr},
           Case{"{device}/x", "$SYS/x", nullptr},
           Case{"+/{device}", "$SYS/x", nullptr},
           Case{"{device+}", "$SYS/x", nullptr},
           Case{"$SYS/{device}", "$SYS/x", "x"},
           Case{"/{device}", "/x", "x"},
       }) {
    CAPTURE(c.text);
    CAPTURE(c.topic);
    const auto parsed = TopicTemplate::parse(c.text);
    REQUIRE(parsed.ok());
    TopicMatch match;
    const bool matched = parsed->match(c.topic, match);
    REQUIRE(matched == (c.device != nullptr));
    if (!matched) continue;
    CHECK(match.device == c.device);
    CHECK(match.sensor == c.sensor);
    CHECK(match.namespace_name == c.space);
  }
}

TEST_CASE("topic template: derives the subscription filter") {
  struct Case {
    const char* text;
    const char* filter;
  };
  for (const Case& c :
       {Case{"sensors/{device}/{sensor}", "sensors/+/+"}, Case{"z/{device+}", "z/+/#"},
        Case{"a/{device+}/temp", "a/+/#"}, Case{"a/dev-{device}/t", "a/+/t"},
        Case{"{device}/#", "+/#"}, Case{"+/{device}", "+/+"}, Case{"{device+}", "+/#"}}) {
    CAPTURE(c.text);
    const auto parsed = TopicTemplate::parse(c.text);
    REQUIRE(parsed.ok());
    CHECK(parsed->filter() == c.filter);
  }
}

TEST_CASE("topic template: says what is wrong") {
  struct Case {
    const char* text;
    const char* part;
  };
  for (const Case& c :
       {Case{"", "empty"}, Case{"a/\xff/{device}", "UTF-8"}, Case{"a/#/b", "last level"},
        Case{"a/b#", "stand alone"}, Case{"a/x+", "stand alone"}, Case{"a/{device", "without `}`"},
        Case{"a/device}", "without"}, Case{"a/{dev}", "only {namespace}"},
        Case{"{device}/{device}", "twice"}, Case{"{device+}/{sensor+}", "at most one"},
        Case{"{device+}/#", "at most one"}, Case{"x{device+}", "stands alone"},
        Case{"{device}{sensor}", "one placeholder"}, Case{"{namespace+}", "one level"},
        Case{"+{device}", "stand alone"}, Case{"$share/g/{device}", "shared"}}) {
    CAPTURE(c.text);
    const auto parsed = TopicTemplate::parse(c.text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.status().code() == StatusCode::InvalidArgument);
    CAPTURE(parsed.status().message());
    CHECK(parsed.status().message().find(c.part) != std::string::npos);
  }
}

TEST_CASE("name template: joins text, fields and levels") {
  const auto topic = TopicTemplate::parse("home/+/{device}/state");
  REQUIRE(topic.ok());
  TopicMatch match;
  REQUIRE(topic->match("home/light/desk/state", match));
  struct Case {
    const char* text;
    const char* want;  // null: refused
  };
  for (const Case& c : {Case{"{2}.{device}", "light.desk"}, Case{"pi", "pi"}, Case{"{4}", "state"},
                        Case{"{5}", nullptr}, Case{"{0}", nullptr}, Case{"{sensor}", nullptr},
                        Case{"a{", nullptr}, Case{"a}b", nullptr}, Case{"{x}", nullptr}}) {
    CAPTURE(c.text);
    const auto name = mqtt::NameTemplate::parse(c.text, *topic);
    REQUIRE(name.ok() == (c.want != nullptr));
    if (name.ok()) CHECK(name->render(match) == c.want);
  }
}

TEST_CASE("filter_covers knows what overlaps") {
  struct Case {
    const char* wide;
    const char* narrow;
    bool want;
  };
  for (const Case& c :
       {Case{"a/#", "a/b", true}, Case{"a/#", "a", true}, Case{"a/#", "a/+/#", true},
        Case{"a/+", "a/b", true}, Case{"a/+", "a/#", false}, Case{"a/b", "a/+", false},
        Case{"#", "a/b", true}, Case{"#", "$SYS/b", false}, Case{"+/b", "$SYS/b", false},
        Case{"a/+/#", "a", false}, Case{"a/+/#", "a/#", false}, Case{"a/+/#", "a/+", true},
        Case{"a/b", "a/b", true}, Case{"a/b/c", "a/b", false}, Case{"a/+/c", "a/+/c", true}}) {
    CAPTURE(c.wide);
    CAPTURE(c.narrow);
    CHECK(mqtt::filter_covers(c.wide, c.narrow) == c.want);
  }
}

TEST_CASE("filters overlap where a topic matches both") {
  struct Case {
    const char* a;
    const char* b;
    bool overlap;
  };
  for (const Case& c :
       {Case{"a/+", "+/b", true}, Case{"a/b", "a/b", true}, Case{"a/#", "a", true},
        Case{"a/+/c", "a/b/#", true}, Case{"+/+/state", "homeassistant/+/+", true},
        Case{"#", "a/b/c", true}, Case{"a/+", "a/+/+", false}, Case{"a/b", "a/c", false},
        Case{"+/b", "a/c", false}, Case{"a", "a/+", false}, Case{"#", "$SYS/a", false},
        Case{"+/a", "$SYS/a", false}, Case{"$SYS/#", "$SYS/a", true}}) {
    CAPTURE(c.a);
    CAPTURE(c.b);
    CHECK(mqtt::filters_overlap(c.a, c.b) == c.overlap);
    CHECK(mqtt::filters_overlap(c.b, c.a) == c.overlap);
  }
}

TEST_CASE("filters match topics as a broker's do") {
  struct Case {
    const char* filter;
    const char* topic;
    bool matches;
  };
  for (const Case& c :
       {Case{"a/b", "a/b", true}, Case{"a/+", "a/b", true}, Case{"a/+", "a/", true},
        Case{"a/+", "a", false}, Case{"a/#", "a", true}, Case{"a/#", "a/b/c", true},
        Case{"+", "a/b", false}, Case{"+/+", "/a", true}, Case{"#", "a/b", true},
        Case{"#", "$SYS/a", false}, Case{"+/a", "$SYS/a", false}, Case{"$SYS/#", "$SYS/a", true},
        Case{"a/b", "a/b/c", false}, Case{"a/b/c", "a/b", false}, Case{"a/+/c", "a/x/c", true},
        Case{"a/+/c", "a/x/d", false}}) {
    CAPTURE(c.filter);
    CAPTURE(c.topic);
    CHECK(mqtt::filter_matches(c.filter, c.topic) == c.matches);
  }
}

using namespace edgecase;
using test::StoredReading;

namespace {

struct NamesFixture : test::MqttFixture {
  NamesFixture() {
    config::MqttRuleSettings zigbee, ttn;
    zigbee.preset = "zigbee2mqtt";
    ttn.preset = "ttn";
    auto compiled = mqtt::compile_rules({zigbee, ttn});
    REQUIRE(compiled.ok());
    rules = std::move(compiled).value();
  }
  // One run of the daemon.
  void deliver(const std::vector<std::pair<std::string, std::string>>& messages) {
    auto names = mqtt::DeviceNames::open(engine, random);
    REQUIRE(names.ok());
    mqtt::MessageSink sink(mqtt::SinkParts{.rules = rules,
                                           .limits = settings,
                                           .pipeline = *pipeline,
                                           .rejected = *rejected,
                                           .clock = system_clock(),
                                           .names = names->get()});
    for (const auto& [topic, payload] : messages) {
      const mqtt::IncomingMessage message{.topic = topic, .payload = payload, .qos = 1};
      sink.take({&message, 1});
    }
    sink.stop();
  }

  const config::LimitSettings settings;
  SeededRandom random{7};
  std::vector<mqtt::TopicRule> rules;
};

const char* const kUplink = R"({"uplink_message":{"decoded_payload":{"t":1}}})";

}  // namespace

TEST_CASE("device names: two devices never become one, also over restarts") {
  NamesFixture fixture;
  auto names = mqtt::DeviceNames::open(fixture.engine, fixture.random);
  REQUIRE(names.ok());
  const auto name_of = [&names](const char* wanted, const char* levels) {
    const auto named = (*names)->name_of("default", wanted, levels);
    (*names)->keep(named);
    return named.name;
  };
  CHECK(name_of("1.OG", "1/OG") == "1.OG");
  CHECK(name_of("1.OG", "1/OG") == "1.OG");
  const std::string other = name_of("1.OG", "1.OG");
  CHECK(other.starts_with("1.OG~"));
  CHECK(name_of("1.OG", "1.OG") == other);
  CHECK((*names)->name_of("plant", "1.OG", "1.OG").name == "1.OG");
  // Nobody has a name that it was not allowed to take.
  CHECK((*names)->name_of("default", "2.OG", "2/OG").is_new);
  CHECK((*names)->name_of("default", "2.OG", "2.OG").is_new);

  fixture.deliver({{"zigbee2mqtt/1.OG", R"({"t":1})"}});
  fixture.deliver({{"zigbee2mqtt/1/OG", R"({"t":2})"},
                   {"zigbee2mqtt/1.OG", R"({"t":3})"},
                   {"zigbee2mqtt/1.OG/state", "ON"}});
  fixture.deliver({{"zigbee2mqtt/1/OG", R"({"t":4})"}});
  CHECK(fixture.readings("default", "1.OG", "t").size() == 2);
  CHECK(fixture.readings("default", "1.OG", "state").size() == 1);
  auto again = mqtt::DeviceNames::open(fixture.engine, fixture.random);
  REQUIRE(again.ok());
  const std::string slashed = (*again)->name_of("default", "1.OG", "1/OG").name;
  CHECK(slashed.starts_with("1.OG~"));
  CHECK(fixture.readings("default", slashed, "t").size() == 2);
}

TEST_CASE("device names: The Things Stack's devices are told apart by their application") {
  NamesFixture fixture;
  fixture.deliver({{"v3/farm@ttn/devices/soil-1/up", kUplink}});
  fixture.deliver(
      {{"v3/park@ttn/devices/soil-1/up", kUplink}, {"v3/farm@ttn/devices/soil-1/up", kUplink}});
  CHECK(fixture.readings("default", "soil-1", "t").size() == 2);
  auto names = mqtt::DeviceNames::open(fixture.engine, fixture.random);
  REQUIRE(names.ok());
  const std::string other = (*names)->name_of("default", "soil-1", "park@ttn/soil-1").name;
  CHECK(other.starts_with("soil-1~"));
  CHECK(fixture.readings("default", other, "t").size() == 1);
}
