#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "wire/line_protocol.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/reading_format.h"

namespace edgecase::wire {
namespace {

struct Decoded {
  std::vector<std::string> readings;  // "device/sensor@time=value"
  std::vector<LineError> errors;
  std::uint64_t good_lines = 0;
  std::uint64_t bad_lines = 0;
};

std::string text_of(const Value& value) {
  switch (value.type) {
    case ValueType::Float64: return "f" + std::to_string(value.float64);
    case ValueType::Int64: return "i" + std::to_string(value.int64);
    case ValueType::Bool: return value.boolean ? "true" : "false";
    case ValueType::Text: return "\"" + std::string(value.text) + "\"";
    case ValueType::Bytes: return "bytes";
  }
  return "?";
}

Decoded decode(std::string_view body, std::int64_t unit_ns = 1, std::size_t error_limit = 20) {
  LineProtocolOptions options;
  options.unit_ns = unit_ns;
  options.error_limit = error_limit;
  LineProtocolDecoder decoder(body, options);
  Decoded decoded;
  ReadingBatch batch;
  while (decoder.next(batch)) {
    for (const Reading& reading : batch.readings) {
      const std::string time = reading.time_ns ? std::to_string(*reading.time_ns) : "arrival";
      decoded.readings.push_back(std::string(reading.device) + "/" + std::string(reading.sensor) +
                                 "@" + time + "=" + text_of(reading.value));
    }
    batch.clear();
  }
  decoded.errors = decoder.errors();
  decoded.good_lines = decoder.good_lines();
  decoded.bad_lines = decoder.bad_lines();
  return decoded;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("line protocol: what a line means") {
  struct Case {
    const char* body;
    Lines want;
  };
  const Case cases[] = {
      {"t value=1 5", {"t/t@5=f1.000000"}},
      {"t,device=shed value=21.5 5", {"shed/t@5=f21.500000"}},
      {"t,host=pi value=21.5 5", {"pi/t@5=f21.500000"}},
      {"t,host=pi,device=shed value=1 5", {"shed/t{host=pi}@5=f1.000000"}},
      {"t,b=2,a=1 x=1,value=2 5", {"t/t.x{a=1,b=2}@5=f1.000000", "t/t{a=1,b=2}@5=f2.000000"}},
      {"disk,host=pi,path=/var/log free=1i 5", {"pi/disk.free{path=:var:log}@5=i1"}},
      {"m,device=d x=1", {"d/m.x@arrival=f1.000000"}},
      {"m,device=d x=1 -5", {"d/m.x@-5=f1.000000"}},
      {"m x=9223372036854775807i,y=-9223372036854775808i 0",
       {"m/m.x@0=i9223372036854775807", "m/m.y@0=i-9223372036854775808"}},
      {"m x=7u 0", {"m/m.x@0=i7"}},
      {"m a=t,b=T,c=true,d=True,e=TRUE 0",
       {"m/m.a@0=true", "m/m.b@0=true", "m/m.c@0=true", "m/m.d@0=true", "m/m.e@0=true"}},
      {"m a=f,b=F,c=false,d=False,e=FALSE 0",
       {"m/m.a@0=false", "m/m.b@0=false", "m/m.c@0=false", "m/m.d@0=false", "m/m.e@0=false"}},
      {"m a=-1.5e3,b=.5,c=+2 0",
       {"m/m.a@0=f-1500.000000", "m/m.b@0=f0.500000", "m/m.c@0=f2.000000"}},
      {"m a=\"\" 0", {"m/m.a@0=\"\""}},
      {"m a=\"x y,z=1\",b=2 0", {"m/m.a@0=\"x y,z=1\"", "m/m.b@0=f2.000000"}},
      {R"(m a="q \" b \\ n \n" 0)", {R"(m/m.a@0="q " b \ n \n")"}},
      {"m a=\"two\nlines\" 0", {"m/m.a@0=\"two\nlines\""}},
      {"\xc3\xa4,device=\xe2\x82\xac a=\"\xf0\x9f\x8c\xa1\" 0",
       {"\xe2\x82\xac/\xc3\xa4.a@0=\"\xf0\x9f\x8c\xa1\""}},
      // Escapes: comma and space everywhere, equals in tags and field keys.
      {R"(a\,b\ c,device=d\,e\ f\=g,t\=1=x h\,i\ j\=k=1 0)",
       {"d,e f=g/a,b c.h,i j=k{t=1=x}@0=f1.000000"}},
      {R"(a\b,device=c\d e\f=1 0)", {R"(c\d/a\b.e\f@0=f1.000000)"}},
      {R"(m,device=a\\ b v=1 0)", {R"(a\ b/m.v@0=f1.000000)"}},
      {"m=x,device=d v=1 0", {"d/m=x.v@0=f1.000000"}},
      // One that a tag's value begins with means itself, escaped or not.
      {"m,device==d v=1 0", {"=d/m.v@0=f1.000000"}},
      {"m,device=d,t==x v=1 0", {"d/m.v{t==x}@0=f1.000000"}},
      {R"(m,device=d,t=\=x v=1 0)", {"d/m.v{t==x}@0=f1.000000"}},
      {R"(m,device=d,t=x\= v=1 0)", {"d/m.v{t=x=}@0=f1.000000"}},
      {"m,device=d,t=\"x\" v=1 0", {"d/m.v{t=\"x\"}@0=f1.000000"}},
      {R"(m,device=d,t=\  v=1 0)", {"d/m.v{t= }@0=f1.000000"}},
      // What names do not hold becomes `:`.
      {"km/h,device=a/b\tc x/y=1 0", {"a:b:c/km:h.x:y@0=f1.000000"}},
      {"\u00b5g/m\u00b3 value=1 0", {"\u00b5g:m\u00b3/\u00b5g:m\u00b3@0=f1.000000"}},
      {"m,device=d,a=1 v=1 0\nm,device=d,b=1 v=1 0",
       {"d/m.v{a=1}@0=f1.000000", "d/m.v{b=1}@0=f1.000000"}},
      {"m,device=d,t=x\u0085y v=1 0", {"d/m.v{t=x:y}@0=f1.000000"}},
      // The device that is meant: Home Assistant's entity, the host of a disk, else `device`,
      // `host`, measurement.
      {"state,domain=light,entity_id=kitchen,host=pi value=1 0",
       {"light.kitchen/state{host=pi}@0=f1.000000"}},
      {"C,domain=sensor,entity_id=t,device=x value=1 0", {"sensor.t/C{device=x}@0=f1.000000"}},
      {"m,domain=x,host=pi v=1 0", {"pi/m.v{domain=x}@0=f1.000000"}},
      {"disk,device=sda1,host=pi used=1i 0", {"pi/disk.used{device=sda1}@0=i1"}},
      {"smart_device,device=sda,host=pi ok=t 0", {"pi/smart_device.ok{device=sda}@0=true"}},
      // Blanks.
      {"  m   a=1   5  ", {"m/m.a@5=f1.000000"}},
      {"\n\n# nothing\n   # indented\nm a=1 5\n\n", {"m/m.a@5=f1.000000"}},
      {"m a=1 5\r\nm a=2 6\r\n", {"m/m.a@5=f1.000000", "m/m.a@6=f2.000000"}},
      {"m a=1\r\n\r\nm a=2\r", {"m/m.a@arrival=f1.000000", "m/m.a@arrival=f2.000000"}},
      {"", {}},
      {"\n\r\n# x", {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.body);
    const Decoded got = decode(c.body);
    CHECK(got.readings == c.want);
    CHECK(got.bad_lines == 0);
  }
}

TEST_CASE("line protocol: a bad line is named, its neighbours are kept") {
  struct Case {
    const char* line;
    const char* why;
  };
  const Case cases[] = {
      {"m", "fields are missing"},
      {"m,device=d", "fields are missing"},
      {"m,device=d ", "fields are missing"},
      {",device=d a=1", "measurement is missing"},
      {"m, a=1", "tag's key is missing"},
      {"m,=x a=1", "tag's key is missing"},
      {"m,t a=1", "tag's value is missing: t"},
      {"m,t= a=1", "tag's value is missing: t"},
      {"m,s=1,serial\\ no=,t=2 a=1", "tag's value is missing: serial no"},
      {"m,t=1,u= a=1", "tag's value is missing: u"},
      {"m,device= a=1", "tag's value is missing: device"},
      {"m,host=,t=1 a=1", "tag's value is missing: host"},
      {"m,t= 1 a=1", "tag's value is missing: t"},
      {"m,x\xff= a=1", "its key is not UTF-8"},
      {"m,t== a=1=", "field's value is malformed"},
      {"m,t===x a=1", "unescaped '=': t"},
      {"m,url=http://h/?q=1&r=2,t=1 a=1", "unescaped '=': url"},
      {"m,t=x=y,u=1 a=1", "unescaped '=': t"},
      {"m,,t=1 a=1", "tag's key is missing"},
      {"m,t=x\\ a=1", "unescaped '=': t"},
      {"m,t=x\\ a", "fields are missing"},
      {"m,t=\"x y\" a=1", "field's value is missing"},
      {"m a=b=1i", "no number, text in quotes, or bool"},
      {"m a=1=2", "field's value is malformed"},
      {"m,t=1, a=1", "tag's key is missing"},
      {"m,t=1=2 a=1", "unescaped '=': t"},
      {"m,t=1,t=2 a=1", "tag t is given twice"},
      {"m,device=a,device=b a=1", "tag device is given twice"},
      {"m a", "field's value is missing"},
      {"m a=", "field's value is missing"},
      {"m a= 5", "field's value is missing"},
      {"m =1", "field's key is missing"},
      {"m a=1,", "field's key is missing"},
      {"m a=1,,b=2", "field's key is missing"},
      {"m a=1 ,b=2", "timestamp is no integer"},
      {"m a=x", "no number, text in quotes, or bool"},
      {"m a=tRUE", "no number, text in quotes, or bool"},
      {"m a=nan", "NaN and infinity"},
      {"m a=NaN", "NaN and infinity"},
      {"m a=Inf", "NaN and infinity"},
      {"m a=infinity", "NaN and infinity"},
      {"m a=-inf", "number is malformed"},
      {"m a=1e999", "too large"},
      {"m a=1.5i", "integer is malformed"},
      {"m a=1e3i", "integer is malformed"},
      {"m a=9223372036854775808i", "range of a signed 64-bit integer"},
      {"m a=-9223372036854775809i", "range of a signed 64-bit integer"},
      {"m a=9223372036854775808u", "range of a signed 64-bit integer"},
      {"m a=18446744073709551615u", "range of a signed 64-bit integer"},
      {"m a=-1u", "unsigned integer is negative"},
      {"m a=1x", "field's value is malformed"},
      {"m a=\"x\"y", "field's value is malformed"},
      {"m a=\"open", "not closed by a quote"},
      {"m a=1 5x", "timestamp is no integer"},
      {"m a=1 5.5", "timestamp is no integer"},
      {"m a=1 x", "timestamp is no integer"},
      {"m a=1 5 6", "text after the timestamp"},
      {"m a=1 9223372036854775808", "64-bit nanoseconds"},
      {"m a=\"\xff\"", "text is not UTF-8"},
      {"m\xff a=1", "not UTF-8"},
      {"m,device=\xc3 a=1", "not UTF-8"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.line);
    const Decoded got = decode("good a=1 1\n" + std::string(c.line) + "\ngood a=2 2\n");
    CHECK(got.readings == Lines{"good/good.a@1=f1.000000", "good/good.a@2=f2.000000"});
    CHECK(got.good_lines == 2);
    CHECK(got.bad_lines == 1);
    REQUIRE(got.errors.size() == 1);
    CHECK(got.errors[0].line == 2);
    CAPTURE(got.errors[0].message);
    CHECK(got.errors[0].message.find(c.why) != std::string::npos);
  }
}

TEST_CASE("line protocol: a bad field takes its whole line with it") {
  const Decoded got = decode("m a=1,b=2,c=oops 1");
  CHECK(got.readings.empty());
  CHECK(got.bad_lines == 1);
}

TEST_CASE("line protocol: names end where they do, however long they are") {
  const std::string letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (std::size_t size = 1; size <= letters.size(); ++size) {
    CAPTURE(size);
    const std::string name = letters.substr(0, size);
    CHECK(decode("m,device=" + name + " value=1 2").readings == Lines{name + "/m@2=f1.000000"});
    CHECK(decode("m,device=" + name + "\\ b value=1 2").readings ==
          Lines{name + " b/m@2=f1.000000"});
    CHECK(decode("m,device=" + name + "\nm value=1 2").readings == Lines{"m/m@2=f1.000000"});
    // A byte with the highest bit is none of them.
    CHECK(decode("m,device=" + name + "\u00a0 value=1 2").readings ==
          Lines{name + "\u00a0/m@2=f1.000000"});
  }
}

TEST_CASE("line protocol: names are limited") {
  const std::string long_name(129, 'x');
  CHECK(decode("m,device=" + long_name + " a=1").readings ==
        Lines{long_name + "/m.a@arrival=f1.000000"});
  for (const std::size_t bytes : {256u, 257u, 1'022u, 1'023u, 9'999u}) {
    const std::string name(bytes, 'x');
    const auto device_of = [&](const std::string& text) {
      const std::string reading = decode("m,device=" + text + " a=1").readings.at(0);
      return reading.substr(0, reading.find('/'));
    };
    const auto sensor_of = [&](const std::string& text) {
      const std::string reading = decode("m,device=d " + text + "=1").readings.at(0);
      return reading.substr(2, reading.find('@') - 2);
    };
    const std::string device = device_of(name), sensor = sensor_of(name);
    CHECK(device.size() == std::min<std::size_t>(bytes, 256));
    CHECK(sensor.size() == std::min<std::size_t>(bytes + 2, 1'024));
    CHECK((device == name) == (bytes <= 256));
    CHECK((sensor == "m." + name) == (bytes + 2 <= 1'024));
    // What differs behind the cut is told apart, and the same is the same.
    CHECK(device_of(name + "y") != device_of(name + "z"));
    CHECK(sensor_of(name + "y") != sensor_of(name + "z"));
    CHECK(device_of(name) == device);
  }
  // Not within a character.
  for (std::size_t before = 230; before < 245; ++before) {
    std::string name(before, 'x');
    for (int i = 0; i < 20; ++i) name += "\u20ac";
    std::string made = name;
    make_name(made, kDeviceNameMaxBytes);
    CHECK(check_name("device", made).ok());
    CHECK(made.size() <= kDeviceNameMaxBytes);
    CHECK(made[made.size() - 17] == '~');
  }
  std::string many_tags = "m";
  for (std::size_t i = 0; i <= kTagsPerLineMax; ++i) many_tags += ",t" + std::to_string(i) + "=1";
  CHECK(decode(many_tags + " a=1").bad_lines == 1);
  std::string many_fields = "m a=1";
  for (std::size_t i = 0; i < kFieldsPerLineMax; ++i) many_fields += ",a=1";
  CHECK(decode(many_fields).bad_lines == 1);
}

TEST_CASE("line protocol: lines are counted through texts that span them") {
  const Decoded got = decode("m a=\"1\n2\n3\" 1\nbad\n");
  REQUIRE(got.errors.size() == 1);
  CHECK(got.errors[0].line == 4);
}

TEST_CASE("line protocol: only the first bad lines are named, all are counted") {
  std::string body;
  for (int i = 0; i < 100; ++i) body += "bad\n";
  const Decoded got = decode(body, 1, 3);
  CHECK(got.bad_lines == 100);
  REQUIRE(got.errors.size() == 3);
  CHECK(got.errors[2].line == 3);
}

TEST_CASE("line protocol: timestamps count in their unit and never overflow") {
  CHECK(decode("m value=1 5", 1'000'000'000).readings == Lines{"m/m@5000000000=f1.000000"});
  CHECK(decode("m value=1 -9223372036", 1'000'000'000).bad_lines == 0);
  CHECK(decode("m value=1 9223372037", 1'000'000'000).bad_lines == 1);
  CHECK(decode("m value=1 -9223372037", 1'000'000'000).bad_lines == 1);
  CHECK(decode("m value=1 9223372036854775807").bad_lines == 0);
  CHECK(decode("m value=1 -9223372036854775808").bad_lines == 0);
}

TEST_CASE("line protocol: precisions") {
  struct Case {
    const char* name;
    std::int64_t v1_ns;
    std::int64_t v2_ns;  // 0: refused
  };
  const Case cases[] = {{"", 1, 1},
                        {"n", 1, 0},
                        {"ns", 1, 1},
                        {"u", 1'000, 0},
                        {"us", 1'000, 1'000},
                        {"\u00b5", 1'000, 0},
                        {"ms", 1'000'000, 1'000'000},
                        {"s", 1'000'000'000, 1'000'000'000},
                        {"m", 60'000'000'000, 0},
                        {"h", 3'600'000'000'000, 0},
                        {"d", 0, 0},
                        {"NS", 0, 0},
                        {"x", 0, 0}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto v1 = parse_precision_ns(c.name, InfluxVersion::V1);
    const auto v2 = parse_precision_ns(c.name, InfluxVersion::V2);
    CHECK((v1.ok() ? *v1 : 0) == c.v1_ns);
    CHECK((v2.ok() ? *v2 : 0) == c.v2_ns);
  }
}

TEST_CASE("line protocol: equal names of a slice share their bytes") {
  LineProtocolDecoder decoder("m,host=a x=1,y=2\nm,host=b x=1\nm,host=a x=1,y=2\n", {});
  ReadingBatch batch;
  REQUIRE(decoder.next(batch));
  REQUIRE(batch.readings.size() == 5);
  CHECK(batch.readings[0].device.data() == batch.readings[3].device.data());
  CHECK(batch.readings[0].sensor.data() == batch.readings[3].sensor.data());
  CHECK(batch.readings[1].sensor.data() == batch.readings[4].sensor.data());
  CHECK(batch.readings[0].device != batch.readings[2].device);
}

TEST_CASE("line protocol: devices of one kind share the names of their sensors") {
  LineProtocolDecoder decoder(
      "m,device=a x=1,y=2 1\n"
      "m,device=b x=3,y=4 1\n"            // as before
      "m,device=c y=5,x=6,z=7 1\n"        // in another order, and one more
      "m,device=d x=8,x=9,y=10,z=11 1\n"  // one twice
      "m,device=e,place=p x=12,y=13 1\n"  // another kind
      "m,device=f,place=p x=14,y=15 1\n"
      "m,device=a x=16,y=17,z=18 2\n",
      {});
  ReadingBatch batch;
  REQUIRE(decoder.next(batch));
  std::string names;
  for (const Reading& reading : batch.readings) {
    names += std::string(reading.device) + "/" + std::string(reading.sensor) + "=" +
             std::to_string(static_cast<int>(reading.value.float64)) + " ";
  }
  CHECK(names ==
        "a/m.x=1 a/m.y=2 b/m.x=3 b/m.y=4 c/m.y=5 c/m.x=6 c/m.z=7 d/m.x=8 d/m.x=9 d/m.y=10 "
        "d/m.z=11 e/m.x{place=p}=12 e/m.y{place=p}=13 f/m.x{place=p}=14 f/m.y{place=p}=15 a/m.x=16 "
        "a/m.y=17 a/m.z=18 ");
  CHECK(batch.readings[0].sensor.data() == batch.readings[2].sensor.data());
  CHECK(batch.readings[11].sensor.data() == batch.readings[13].sensor.data());
  CHECK(batch.readings[0].sensor.data() == batch.readings[15].sensor.data());
}

TEST_CASE("line protocol: a large body comes in slices, with more tag sets than are remembered") {
  std::string body;
  const int lines = 30'000;
  for (int i = 0; i < lines; ++i) {
    body += "m,device=d" + std::to_string(i % 5'000) + " a=" + std::to_string(i) + ",b=2 1\n";
  }
  LineProtocolDecoder decoder(body, {});
  ReadingBatch batch;
  std::size_t total = 0;
  int slices = 0;
  while (decoder.next(batch)) {
    CHECK(batch.readings.size() <= kReadingsPerSlice + 1);
    for (const Reading& reading : batch.readings) {
      if (reading.sensor != "m.a") continue;
      const int i = static_cast<int>(reading.value.float64);
      REQUIRE(reading.device == "d" + std::to_string(i % 5'000));
    }
    total += batch.readings.size();
    ++slices;
    batch.clear();
  }
  CHECK(total == 2 * lines);
  CHECK(slices == (2 * lines + static_cast<int>(kReadingsPerSlice) - 1) /
                      static_cast<int>(kReadingsPerSlice));
}

}  // namespace edgecase::wire

// Line protocol as the formatter writes it must be what the decoder reads: export and import.

using namespace edgecase;
using wire::Value;

TEST_CASE("line round trip: random names and values come back, or are a comment") {
  const std::uint64_t seed = 31;
  INFO("seed " << seed);
  SeededRandom random(seed);
  const std::array<std::string_view, 20> pieces = {
      "a", "B", " ", ",", "=",        "\\", "\"", "'", "#", ".",
      "1", "-", "i", "t", "\xc3\xbc", ";",  ":",  "*", "?", "value",
  };
  const auto text_of = [&](std::uint64_t longest) {
    std::string text;
    for (std::uint64_t i = 1 + random.below(longest); i > 0; --i) {
      text += pieces[random.below(pieces.size())];
    }
    return text;
  };
  std::size_t comments = 0;
  for (int i = 0; i < 5'000; ++i) {
    const std::string device = text_of(8), sensor = text_of(8);
    const std::string text = text_of(5) + "\n" + text_of(5) + "\r\n\\";
    Value value;
    switch (random.below(4)) {
      case 0: value = Value::of_float64(static_cast<double>(random.next()) / 7e9); break;
      case 1: value = Value::of_int64(static_cast<std::int64_t>(random.next())); break;
      case 2: value = Value::of_bool(random.below(2) == 0); break;
      default: value = Value::of_text(text); break;
    }
    const auto time_ns = static_cast<std::int64_t>(random.next());
    std::string line;
    wire::ReadingFormatter(wire::ReadingFormat::Line)
        .reading({"default", device, sensor, time_ns, value}, line);
    CAPTURE(line);
    wire::LineProtocolDecoder decoder(line, {});
    wire::ReadingBatch batch;
    const bool more = decoder.next(batch);
    if (line.starts_with('#')) {
      ++comments;
      CHECK_FALSE(more);
      CHECK(decoder.bad_lines() == 0);
      continue;
    }
    REQUIRE_MESSAGE(more, (decoder.errors().empty() ? "" : decoder.errors()[0].message));
    REQUIRE(batch.readings.size() == 1);
    const wire::Reading& back = batch.readings[0];
    CHECK(back.device == device);
    CHECK(back.sensor == sensor);
    CHECK(back.time_ns == time_ns);
    Bytes went_in, came_out;
    wire::append_value(value, went_in);
    wire::append_value(back.value, came_out);
    CHECK(went_in == came_out);
  }
  CHECK(comments > 100);
  CHECK(comments < 2'500);
}
