#include "mqtt/topic_template.h"

#include <doctest/doctest.h>

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
