// Names and numbers of series from one body of line protocol to the next.

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "wire/line_protocol.h"

namespace edgecase::wire {
namespace {

// Bodies one after another, each in memory of its own that is gone when the next one comes.
struct Bodies {
  LineNames names;
  ReadingBatch batch;
  // What each number was said to be of, by numbering.
  std::map<std::uint64_t, std::map<std::uint32_t, std::string>> said;
  std::size_t readings = 0, numbered = 0;

  // Answers "device/sensor" of all readings.
  std::string decode(std::string_view text, std::string_view namespace_name = "default") {
    const std::string body(text);
    LineProtocolOptions options;
    options.namespace_name = namespace_name;
    LineProtocolDecoder decoder(body, options, names);
    std::string all;
    while (decoder.next(batch)) {
      for (const Reading& reading : batch.readings) {
        note(reading);
        all += std::string(reading.device) + "/" + std::string(reading.sensor) + " ";
      }
      batch.clear_readings();
    }
    return all;
  }
  void note(const Reading& reading) {
    ++readings;
    if (reading.series_number == 0) return;
    ++numbered;
    CHECK(reading.series_number < kSeriesNumbersMax);
    const std::string series = std::string(reading.namespace_name) + "/" +
                               std::string(reading.device) + "/" + std::string(reading.sensor);
    const auto [at, is_new] = said[batch.numbering].try_emplace(reading.series_number, series);
    REQUIRE(at->second == series);
  }
};

// One line of each set from `first` on, under each measurement.
std::string lines_of(int first, int sets, const std::vector<std::string>& measurements,
                     int fields) {
  std::string text;
  for (const std::string& measurement : measurements) {
    for (int i = first; i < first + sets; ++i) {
      text += measurement + ",name=truck_" + std::to_string(i) +
              ",fleet=South,driver=Trish,model=H-2,device_version=v2.3,load_capacity=1500,"
              "fuel_capacity=150,nominal_fuel_consumption=12,region=eu-west-1a";
      for (int field = 0; field < fields; ++field)
        text += (field == 0 ? " field_of_seven" : ",field_of_seven") + std::to_string(field) + "=1";
      text += " 1\n";
    }
  }
  return text;
}

// The readings of `text`, without what they say.
std::size_t count_of(Bodies& bodies, const std::string& text) {
  LineProtocolDecoder decoder(text, {}, bodies.names);
  std::size_t readings = 0;
  while (decoder.next(bodies.batch)) {
    readings += bodies.batch.readings.size();
    bodies.batch.clear_readings();
  }
  CHECK(decoder.bad_lines() == 0);
  return readings;
}

}  // namespace

TEST_CASE("line names: what one body taught, the next one is told by") {
  Bodies bodies;
  CHECK(bodies.decode("m,device=a x=1,y=2 1\n") == "a/m.x a/m.y ");
  CHECK(bodies.numbered == 0);  // they may come only once
  for (int i = 0; i < 3; ++i) {
    CHECK(bodies.decode("m,device=a x=1,y=2 1\nm,device=b x=1,y=2 1") ==
          "a/m.x a/m.y b/m.x b/m.y ");
  }
  CHECK(bodies.numbered == 12);
  CHECK(bodies.said.size() == 1);
  CHECK(bodies.said.begin()->second.size() == 4);
  // Another order, some that are missing, one twice, one more.
  CHECK(bodies.decode("m,device=b y=1,x=2,x=3 1\nm,device=a y=1 1\nm,device=a x=1,z=2,y=3,z=4 1") ==
        "b/m.y b/m.x b/m.x a/m.y a/m.x a/m.z a/m.y a/m.z ");
  CHECK(bodies.decode("m,device=a z=1\nm,device=b z=1\n") == "a/m.z b/m.z ");
  CHECK(bodies.said.size() == 1);
}

TEST_CASE("line names: sets of nine tags are built once, as many as there is room for") {
  struct Case {
    int sets;
    std::vector<std::string> measurements;
    int fields;
  };
  for (const Case& c : {Case{500, {"readings"}, 7}, Case{450, {"readings", "diagnostics"}, 5}}) {
    CAPTURE(c.fields);
    Bodies bodies;
    const std::string body = lines_of(0, c.sets, c.measurements, c.fields);
    const std::size_t lines = c.measurements.size() * static_cast<std::size_t>(c.sets);
    for (int round = 0; round < 3; ++round) {
      CHECK(count_of(bodies, body) == lines * static_cast<std::size_t>(c.fields));
      CHECK(bodies.names.built() == lines);
    }
  }
}

TEST_CASE("line names: thousands of sets of nine tags are built once, and all are numbered") {
  Bodies bodies;
  const std::string body = lines_of(0, 5'000, {"readings"}, 7);
  for (int round = 0; round < 2; ++round) CHECK(count_of(bodies, body) == 35'000);
  CHECK(bodies.names.built() == 5'000);
  CHECK(bodies.batch.names.memory_bytes() + bodies.names.memory_bytes() < (5u << 20));
  // Joined names are what they are where they are written out.
  for (const int first : {0, 4'990}) {
    CAPTURE(first);
    Bodies fresh;
    const std::string some = lines_of(first, 10, {"readings"}, 7);
    const std::size_t numbered = bodies.numbered;
    CHECK(bodies.decode(some) == fresh.decode(some));
    CHECK(bodies.numbered - numbered == 70);
  }
  CHECK(bodies.names.built() == 5'000);
}

TEST_CASE("line names: sets that are short know fields by themselves") {
  struct Stored final : KnownSeries {
    bool has_device(std::string_view, std::string_view device) const override {
      return device == "pi" || device == "m";
    }
    bool has_series(std::string_view, std::string_view, std::string_view sensor,
                    const SeriesIdentity&) const override {
      return sensor == "m.b7.d.x" || sensor == "m.a7.old";
    }
    bool has_series_of(std::string_view, std::string_view, std::string_view) const override {
      return false;
    }
  };
  const Stored stored;
  const std::string long_key(1'020, 'k');
  Bodies bodies;
  bodies.names.look_in(&stored);
  bodies.names.set_room(1u << 20);
  // As many that everything else is short.
  count_of(bodies, lines_of(0, 1'200, {"readings"}, 7));
  const std::uint64_t built = bodies.names.built();
  for (int round = 0; round < 3; ++round) {
    CHECK(bodies.decode("m,a=a7,host=pi x=1,value=1 1\nm,a=b7,c=d x=1,y=1 1\n"
                        "m,a=a7,host=pi old=1,y=1,x=1 1\nm,c=d,a=a8 y=1,x=1,old=1 1\n") ==
          "pi/m.x{a=a7} pi/m{a=a7} m/m.b7.d.x m/m.y{a=b7,c=d} "
          "pi/m.a7.old pi/m.y{a=a7} pi/m.x{a=a7} "
          "m/m.y{a=a8,c=d} m/m.x{a=a8,c=d} m/m.old{a=a8,c=d} ");
    // Names that do not tell the identity are none of those that are joined.
    const std::string odd = bodies.decode("m,a=a7,host=pi {=1,x\\ y=1," + long_key + "=1 1\n");
    CHECK(odd.starts_with("pi/m.{{a=a7} pi/m.x y{a=a7} pi/m.kkk"));
    CHECK(odd.find('~') != std::string::npos);
  }
  CHECK(bodies.names.built() - built == 3);
  // Room that is less than what is remembered: it begins anew.
  const std::size_t before = bodies.said.size();
  bodies.names.set_room(64u << 10);
  CHECK(bodies.decode("m,a=a7,host=pi x=1 1\n") == "pi/m.x{a=a7} ");
  CHECK(bodies.said.size() == before);
  bodies.decode("m,a=a7,host=pi x=1 1\n");
  CHECK(bodies.said.size() == before + 1);
}

TEST_CASE("line names: those that are remembered stay when more come than there is room for") {
  Bodies bodies;
  constexpr std::size_t kRoom = 512u << 10;
  bodies.names.set_room(kRoom);
  constexpr int kKnown = 100, kMore = 4'000;
  const std::string known = lines_of(0, kKnown, {"readings"}, 7);
  count_of(bodies, known);
  for (int more = 0; more < kMore; more += kKnown) {
    count_of(bodies, lines_of(kKnown + more, kKnown, {"readings"}, 7));
    count_of(bodies, known);
  }
  // Each of the others once: nothing was forgotten on their account.
  CHECK(bodies.names.built() == kKnown + kMore);
  CHECK(bodies.batch.names.memory_bytes() + bodies.names.memory_bytes() <
        kRoom + TextStore::kBlockMaxBytes);
  CHECK(bodies.batch.texts.memory_bytes() == 0);
  // In turns they cost what there is no room for, and now and then give way to others.
  const std::uint64_t before = bodies.names.built();
  for (int round = 0; round < 3; ++round) count_of(bodies, lines_of(0, 2'000, {"readings"}, 7));
  CHECK(bodies.names.built() - before < 3 * 2'000);
  // Names are what they are wherever they lie.
  CHECK(bodies.decode("m,a=b,c={} x=1 1\nm,a=b,c={} x{=1 1\n") ==
        "m/m.x{a=b,c={}} m/m.x{{a=b,c={}} ");
}

TEST_CASE("line names: what looks like an earlier line is read to its end") {
  Bodies bodies;
  CHECK(bodies.decode("m,device=a x=1,xx=2 1\nm,device=b x=1,xx=2 1\n") ==
        "a/m.x a/m.xx b/m.x b/m.xx ");
  CHECK(bodies.decode("m,device=a xx=1,x=2 1\nm,device=bb x=1 1\nm,device=b\\ c x=1 1\n") ==
        "a/m.xx a/m.x bb/m.x b c/m.x ");
  // A set without fields is no line, and may be the beginning of one.
  CHECK(bodies.decode("m,device=a\\\nm,device=a\\ b x=1 1\n") == "a b/m.x ");
  CHECK(bodies.decode("m,device=a x\\=y=1 1\nm,device=a x=1 1\nm,device=a x\\=y=1 1\n") ==
        "a/m.x=y a/m.x a/m.x=y ");
}

TEST_CASE("line names: another namespace and a batch that was cleared begin anew") {
  Bodies bodies;
  const std::string_view body = "m,device=a x=1 1\nm,device=a x=1 2\n";
  bodies.decode(body, "one");
  bodies.decode(body, "two");
  bodies.decode(body, "one");
  CHECK(bodies.said.size() == 3);
  CHECK(bodies.numbered == 3);
  bodies.batch.clear();
  bodies.decode(body, "one");
  CHECK(bodies.said.size() == 4);
  // Series of lines that say themselves where they belong have no numbers.
  LineProtocolOptions options;
  options.contexts = LineContexts::Followed;
  LineProtocolDecoder decoder(body, options);
  ReadingBatch batch;
  REQUIRE(decoder.next(batch));
  CHECK(batch.numbering == 0);
}

TEST_CASE("line names: what is stored by the rule of version 0.1 goes on there") {
  struct Stored final : KnownSeries {
    bool has_device(std::string_view, std::string_view device) const override {
      return device == "pi" || device == "sda1";
    }
    bool has_series(std::string_view, std::string_view device, std::string_view sensor,
                    const SeriesIdentity&) const override {
      return (device == "pi" && sensor == "cpu.cpu0.idle") ||
             (device == "sda1" && sensor == "disk.pi.used");
    }
    bool has_series_of(std::string_view, std::string_view device,
                       std::string_view prefix) const override {
      return (device == "pi" && prefix == "cpu.cpu0") || (device == "sda1" && prefix == "disk.pi");
    }
  };
  const Stored stored;
  Bodies bodies;
  bodies.names.look_in(&stored);
  for (int i = 0; i < 3; ++i) {
    CHECK(bodies.decode("cpu,cpu=cpu0,host=pi idle=1,user=1 1\ncpu,cpu=cpu1,host=pi idle=1 1\n"
                        "cpu,cpu=cpu0,host=other idle=1 1\n") ==
          "pi/cpu.cpu0.idle pi/cpu.user{cpu=cpu0} pi/cpu.idle{cpu=cpu1} other/cpu.idle{cpu=cpu0} ");
    CHECK(bodies.decode("disk,device=sda1,host=pi used=1 1\ndisk,device=sda2,host=pi used=1 1\n") ==
          "sda1/disk.pi.used pi/disk.used{device=sda2} ");
  }
}

TEST_CASE("line names: more tag sets than are remembered, for body after body") {
  Bodies bodies;
  bodies.names.set_room(256u << 10);
  SeededRandom random(5);
  std::size_t most_bytes = 0;
  for (int round = 0; round < 60; ++round) {
    std::string body, wanted;
    for (int i = 0; i < 500; ++i) {
      const std::string device = "d" + std::to_string(random.below(3'000));
      const std::string place = std::to_string(random.below(2));
      body += "m,device=" + device + ",place=p" + place;
      const char* separator = " ";
      for (const char* const field : {"x", "y", "value"}) {
        if (random.below(4) == 0) continue;
        body += std::string(separator) + field + "=1";
        separator = ",";
        const std::string end = std::string(field) == "value" ? "" : std::string(".") + field;
        wanted += device + "/m" + end + "{place=p" + place + "} ";
      }
      body += *separator == ' ' ? " z=1 1\n" : " 1\n";
      if (*separator == ' ') wanted += device + "/m.z{place=p" + place + "} ";
    }
    REQUIRE(bodies.decode(body) == wanted);
    most_bytes = std::max(most_bytes, bodies.names.memory_bytes() + bodies.batch.memory_bytes());
  }
  CHECK(bodies.said.size() > 1);  // others had their turn
  CHECK(bodies.numbered > bodies.readings / 20);
  CHECK(most_bytes < (2u << 20));
}

TEST_CASE("line names: numbers come to an end, and lines go on without") {
  Bodies bodies;
  // A number is set aside for each field of their kind.
  constexpr std::uint32_t kFields = 250;
  std::string body;
  for (std::uint32_t device = 0; device < kSeriesNumbersMax / kFields + 100; ++device) {
    body += "m,device=d" + std::to_string(device);
    for (std::uint32_t field = device == 0 ? 0 : kFields - 1; field < kFields; ++field)
      body += (field == 0 || device > 0 ? " f" : ",f") + std::to_string(field) + "=1";
    body += " 1\n";
  }
  const std::string first = bodies.decode(body);
  const std::size_t readings = bodies.readings, before = bodies.numbered;
  CHECK(bodies.decode(body) == first);
  CHECK(bodies.numbered - before > readings / 2);
  CHECK(bodies.numbered - before < readings);
}

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
