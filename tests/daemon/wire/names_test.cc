#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "support/test_seed.h"
#include "wire/line_protocol.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/reading_json.h"

using namespace edgecase;

TEST_CASE("names: what people call things is allowed") {
  const std::string longest(wire::kDeviceNameMaxBytes, 'x');
  for (const std::string& name :
       {std::string("kitchen"), std::string("0e:9c:00:4c:1c:51"), std::string("Wohn zimmer"),
        std::string("K\xc3\xbc"
                    "che"),
        std::string("\xe6\xb8\xa9\xe5\xba\xa6"), std::string("\xf0\x9f\x8c\xa1"), std::string("*"),
        std::string("?"), std::string("a\\b"), std::string("."), std::string(".."),
        std::string("a,b=c"), std::string("\"q\""), std::string("\xc2\xa0"), std::string("~"),
        longest}) {
    CAPTURE(name);
    CHECK(wire::check_name("device", name).ok());
  }
}

TEST_CASE("names: what is refused, and why") {
  struct Case {
    std::string name;
    const char* why;
  };
  for (const Case& c : {
           Case{"", "is empty"},
           Case{std::string(wire::kSensorNameMaxBytes + 1, 'x'), "1025 bytes"},
           Case{"a/b", "'/'"},
           Case{"/", "'/'"},
           Case{std::string("a\0b", 3), "control"},
           Case{"a\nb", "control"},
           Case{"a\x1f", "control"},
           Case{"a\x7f", "control"},
           Case{"a\xc2\x80", "control"},
           Case{"a\xc2\x9f", "control"},
           Case{"a\xff", "UTF-8"},
           Case{"a\xc3", "UTF-8"},
       }) {
    CAPTURE(c.name);
    const Status status = wire::check_name("sensor", c.name);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().find(c.why) != std::string::npos);
    CHECK(status.message().find("sensor") == 0);
  }
}

TEST_CASE("names: UTF-8 is taken strictly") {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(good);
    CHECK(wire::is_valid_utf8(good));
  }
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x80\x80", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xe2\x82", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff"}) {
    CAPTURE(bad);
    for (std::size_t before = 0; before < 18; ++before) {
      CHECK_FALSE(wire::is_valid_utf8(std::string(before, 'x') + bad));
      CHECK_FALSE(wire::is_valid_utf8(std::string(before, 'x') + bad + std::string(9, 'y')));
    }
  }
}

namespace edgecase::wire {
namespace {

std::string escaped(std::string_view text, std::string_view special) {
  std::string made;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) made += '\\';
    made += c;
  }
  return made;
}

std::string line_of(const Identity& identity) {
  std::string line = escaped(identity.measurement, ", ");
  for (const auto& [key, value] : identity.tags)
    line += "," + escaped(key, ",= ") + "=" + escaped(value, ",= ");
  return line + " " + escaped(identity.field, ",= ") + "=1 7\n";
}

}  // namespace

TEST_CASE("identity: its bytes lead back to it, and what they cannot be is refused") {
  const Identity identity{"cpu", {{"a", "1"}, {"host", "pi"}}, "usage"};
  const Bytes bytes = encode_identity(identity);
  CHECK(decode_identity(bytes).value() == identity);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    CHECK(!decode_identity(ByteView(bytes).substr(0, i)).ok());
  CHECK(!decode_identity(bytes + "x").ok());
  CHECK(!decode_identity(encode_identity({"m", {{"b", "1"}, {"a", "2"}}, "f"})).ok());
  CHECK(!decode_identity(encode_identity({"m", {{"a", "1"}, {"a", "2"}}, "f"})).ok());
  CHECK(!decode_identity(encode_identity({"m\xff", {}, "f"})).ok());
  CHECK(!decode_identity(encode_identity({std::string(20'000, 'm'), {}, "f"})).ok());
}

TEST_CASE("identity: what a line was is told by its names, or beside them") {
  struct Case {
    const char* line;
    const char* device;
    const char* sensor;
    const char* keys;
    bool by_names;
  };
  for (const Case& c :
       {Case{"cpu,cpu=cpu0,host=pi idle=1 7", "pi", "cpu.idle{cpu=cpu0}", "host", true},
        Case{"cpu,device=pi,host=h idle=1 7", "pi", "cpu.idle{host=h}", "device", true},
        Case{"temp,device=kitchen value=1 7", "kitchen", "temp", "device", true},
        Case{"weather temp=1 7", "weather", "weather.temp", "", true},
        Case{"a.b,host=pi c.d=1 7", "pi", "a.b.c.d", "host", true},
        Case{"\xc2\xb0\x43,domain=sensor,entity_id=attic value=1 7", "sensor.attic", "\xc2\xb0\x43",
             "domain\nentity_id", true},
        Case{"C,domain=a.b,entity_id=c value=1 7", "a.b.c", "C", "", false},
        Case{"km/h,host=pi value=1 7", "pi", "km:h", "host", false},
        Case{"disk,host=pi,path=/var used=1 7", "pi", "disk.used{path=:var}", "host", false},
        Case{"m,host=p/i value=1 7", "p:i", "m", "", false},
        Case{"m,a=x\\,y,host=pi value=1 7", "pi", "m{a=x,y}", "host", false},
        Case{"m,a\\=b=x,host=pi value=1 7", "pi", "m{a=b=x}", "host", false},
        Case{"m,a=b=x,host=pi value=1 7", nullptr, nullptr, nullptr, false},
        Case{"m,host=pi a{b=1 7", "pi", "m.a{b", "host", false}}) {
    CAPTURE(c.line);
    ReadingBatch batch;
    LineProtocolDecoder decoder(c.line, {});
    const bool is_taken = decoder.next(batch);
    CHECK(is_taken == (c.device != nullptr));
    if (!is_taken) continue;
    const Reading& reading = batch.readings.at(0);
    CHECK(reading.device == c.device);
    CHECK(reading.sensor == c.sensor);
    REQUIRE(reading.identity != nullptr);
    CHECK(reading.identity->device_keys == c.keys);
    CHECK(reading.identity->body.empty() == c.by_names);
    ReadingFormatter formatter(ReadingFormat::Line);
    std::string again;
    formatter.reading(reading, again);
    CHECK(again == std::string(c.line) + "\n");
  }
}

TEST_CASE("identity: hostile ones go out as they came in, by lines and by JSON") {
  const std::uint64_t seed = test::test_seed(20'261'129);
  MESSAGE("EDGECASE_TEST_SEED=" << seed);
  SeededRandom random(seed);
  const std::string alphabet = "ab.,= {}/\\\"~:\x01";
  const auto name = [&](bool may_end_odd) {
    std::string text;
    const std::uint64_t size = 1 + random.next() % 6;
    while (text.size() < size) {
      const std::uint64_t pick = random.next() % (alphabet.size() + 1);
      text += pick == alphabet.size() ? std::string("\xc3\xa9") : std::string(1, alphabet[pick]);
    }
    if (!may_end_odd && text.back() == '\\') text += 'z';
    return text;
  };
  for (int i = 0; i < 3'000; ++i) {
    Identity identity{name(false), {}, name(false)};
    for (std::uint64_t tags = random.next() % 4; tags > 0; --tags) {
      std::string key = random.next() % 3 == 0 ? "host" : name(false);
      if (random.next() % 6 == 0) key = "device";
      const bool is_there = std::any_of(identity.tags.begin(), identity.tags.end(),
                                        [&](const auto& tag) { return tag.first == key; });
      if (!is_there) identity.tags.emplace_back(std::move(key), name(false));
    }
    std::sort(identity.tags.begin(), identity.tags.end());
    const std::string line = line_of(identity);
    CAPTURE(line);
    ReadingBatch batch;
    LineProtocolDecoder decoder(line, {});
    REQUIRE(decoder.next(batch));
    const Reading reading = batch.readings.at(0);
    REQUIRE(reading.identity != nullptr);
    CHECK(identity_of(*reading.identity, reading.device, reading.sensor) == identity);
    // What is kept of it says the same, however it is kept.
    Bytes body;
    const SeriesIdentity kept = series_identity(identity, reading.device, reading.sensor, body);
    CHECK(identity_of(kept, reading.device, reading.sensor) == identity);
    ReadingFormatter json(ReadingFormat::Ndjson);
    std::string object;
    json.reading(reading, object);
    ReadingBatch other;
    JsonDecodeOutcome outcome;
    REQUIRE(decode_readings_json(object, {}, other, outcome).ok());
    REQUIRE(other.readings.size() == 1);
    const Reading& back = other.readings[0];
    const SeriesIdentity of_names = identity_of_names(back.sensor);
    CHECK(identity_of(back.identity == nullptr ? of_names : *back.identity, back.device,
                      back.sensor) == identity);
    if (identity.measurement.front() == '#') continue;
    ReadingFormatter lines(ReadingFormat::Line);
    std::string again;
    lines.reading(back, again);
    CHECK((again == line || back.identity == nullptr));
  }
}

TEST_CASE("identity: a name that is taken gets its hash, as long as names may be") {
  CHECK(name_of_taken("m.f", "x", 0) != name_of_taken("m.f", "y", 0));
  CHECK(name_of_taken("m.f", "x", 0) != name_of_taken("m.f", "x", 1));
  CHECK(name_of_taken("m.f", "x", 0).starts_with("m.f~"));
  CHECK(name_of_taken(std::string(kSensorNameMaxBytes, 'a'), "x", 0).size() == kSensorNameMaxBytes);
  const std::string wide =
      name_of_taken(std::string(kSensorNameMaxBytes - 18, 'a') + "\xc3\xa9", "x", 0);
  CHECK(wide.size() <= kSensorNameMaxBytes);
}

namespace {

TEST_CASE("nearest_word finds what was meant and nothing far-fetched") {
  constexpr std::array<std::string_view, 4> kKnown = {"query", "export", "serve", "a"};
  CHECK(nearest_word("qurey", kKnown) == "query");
  CHECK(nearest_word("exprt", kKnown) == "export");
  CHECK(nearest_word("ser", kKnown) == "serve");
  CHECK(nearest_word("banana", kKnown) == "");
  CHECK(nearest_word("x", kKnown) == "");
  CHECK(nearest_word("", kKnown) == "");
  CHECK(nearest_word(std::string_view("q"), kKnown) == "");
}

}  // namespace
}  // namespace edgecase::wire
