#include "wire/line_rules.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "wire/line_protocol.h"

namespace edgecase::wire {
namespace {

// What one line becomes: `device/sensor`, or the error.
std::string name_of(const std::string& line, const LineRules& rules, Identity* identity = nullptr) {
  LineProtocolOptions options;
  options.rules = &rules;
  LineProtocolDecoder decoder(line, options);
  ReadingBatch batch;
  if (!decoder.next(batch)) return decoder.errors().empty() ? "" : decoder.errors().front().message;
  const Reading& reading = batch.readings.front();
  if (identity != nullptr)
    *identity = identity_of(*reading.identity, reading.device, reading.sensor);
  return std::string(reading.device) + "/" + std::string(reading.sensor);
}

TEST_CASE("line rules: the first that matches names the device") {
  const std::vector<LineRule> written = {{"weather_*", "{station}"},
                                         {"*", "{building}-{room}"},
                                         {"meter", "house"},
                                         {"m?d", "{a}{a}"},
                                         {"tail", "x{host}y"}};
  const LineRules rules = LineRules::compile(written).value();
  const std::map<std::string, std::string> cases = {
      {"weather_now,station=roof temp=1 1", "roof/weather_now.temp"},
      {"weather_now,host=pi,station=roof temp=1 1", "roof/weather_now.temp{host=pi}"},
      // A rule matches a line that has all of its tags; otherwise it is as without rules.
      {"weather_now,host=pi temp=1 1", "pi/weather_now.temp"},
      {"weather_now,building=A,room=2 temp=1 1", "A-2/weather_now.temp"},
      {"air,building=A,room=2,sensor=x co2=1 1", "A-2/air.co2{sensor=x}"},
      {"air,building=A co2=1 1", "air/air.co2{building=A}"},
      {"meter,phase=1 value=1 1", "house/meter{phase=1}"},
      {"mid,a=b f=1 1", "bb/mid.f"},
      {"tail,host=h f=1 1", "xhy/tail.f"},
      // Home Assistant's, by what is so without a rule.
      {"W,domain=light,entity_id=lamp value=1 1", "light.lamp/W"},
      // What no name of a device may hold is replaced, as without a rule.
      {"weather_now,station=a/b temp=1 1", "a:b/weather_now.temp"},
      {"air,building=A/1,room=2 co2=1 1", "A:1-2/air.co2"}};
  for (const auto& each : cases) {
    CAPTURE(each.first);
    CHECK(name_of(each.first, rules) == each.second);
  }
}

TEST_CASE("line rules: the identity of a line is what it came with, whatever names it") {
  const std::vector<LineRule> written = {{"a", "{host}"}, {"b", "{x}-{y}"}, {"c", "house"}};
  const LineRules rules = LineRules::compile(written).value();
  const LineRules none;
  for (const std::string line :
       {"a,host=h,x=1 f=1 1", "a,host=h/1 f=1 1", "b,host=h,x=p,y=q f=1 1", "b,x=p,y=q value=1 1",
        "b,x=p/q,y={} f=1 1", "c f=1 1", "c,host=h,device=d f=1 1", "d,device=d f=1 1"}) {
    CAPTURE(line);
    Identity by_rule, by_itself;
    name_of(line, rules, &by_rule);
    name_of(line, none, &by_itself);
    CHECK(by_rule == by_itself);
  }
  // Two tag sets of one name are told apart by their identity.
  Identity one, other;
  CHECK(name_of("b,x=p-q,y=r f=1 1", rules, &one) == name_of("b,x=p,y=q-r f=1 1", rules, &other));
  CHECK_FALSE(one == other);
}

TEST_CASE("line rules: lines of one body keep to their rules, remembered or not") {
  const std::vector<LineRule> written = {{"m", "{a}-{b}"}};
  const LineRules rules = LineRules::compile(written).value();
  std::string body;
  const int sets = 1'100;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < sets; ++i) body += "m,a=" + std::to_string(i) + ",b=x,c=y f=1,g=2 1\n";
  }
  LineNames names;
  names.obey(&rules);
  names.set_room(64u << 10);
  LineProtocolDecoder decoder(body, {}, names);
  ReadingBatch batch;
  int met = 0;
  while (decoder.next(batch)) {
    for (const Reading& reading : batch.readings) {
      const std::string number = std::to_string(met / 2 % sets);
      CHECK(reading.device == number + "-x");
      CHECK(reading.sensor == (met % 2 == 0 ? "m.f{c=y}" : "m.g{c=y}"));
      ++met;
    }
    batch.clear_readings();
  }
  CHECK(met == 4 * sets);
  CHECK(names.built() > static_cast<std::uint64_t>(sets) + 100);
}

TEST_CASE("line rules: a wrong one is refused in words, with its number and line") {
  const auto refusal = [](LineRule rule) {
    const std::vector<LineRule> written = {{"a", "{b}"}, std::move(rule)};
    return LineRules::compile(written).status().message();
  };
  CHECK(refusal({"a", "", 14}) ==
        "influx.rule 2 (line 14): device: is missing, write device = \"{station}\"");
  CHECK(refusal({"a", "{", 0}) ==
        "influx.rule 2: device: \"{\": behind { stands the key of a tag, and then }");
  for (const char* device : {"{}", "a{b", "a{{b}}", "a}b", "{a}}", "\xff"})
    CHECK_FALSE(refusal({"a", device, 0}).empty());
  for (const char* measurement : {"", "a/b", "a\\", "\xff"})
    CHECK_FALSE(refusal({measurement, "{b}", 0}).empty());
  CHECK(refusal({"*", "x", 0}).empty());
}

}  // namespace
}  // namespace edgecase::wire
