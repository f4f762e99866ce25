// tidy: allow-file line-length: expected lines of output are kept whole
#include "wire/reading_format.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "wire/line_protocol.h"
#include "wire/reading.h"
#include "wire/reading_json.h"

using namespace edgecase;
using wire::Reading;
using wire::ReadingFormat;
using wire::Value;

namespace {

constexpr std::int64_t kTime = 1'763'647'200'000'000'000;

Reading make_reading(std::string_view device, std::string_view sensor, const Value& value) {
  return {"default", device, sensor, kTime, value};
}

std::string format(ReadingFormat format, const std::vector<Reading>& readings) {
  std::string text;
  wire::ReadingFormatter formatter(format);
  formatter.begin(text);
  for (const Reading& reading : readings) formatter.reading(reading, text);
  formatter.end(text);
  return text;
}

// A reader of RFC 4180 as others write it: quoted fields, doubled quotes, line breaks inside.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& field = rows.back().back();
    if (quoted) {
      if (text[i] != '"') {
        field += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',') {
      rows.back().emplace_back();
    } else if (text[i] == '\n') {
      rows.emplace_back(1);
    } else {
      field += text[i];
    }
  }
  rows.pop_back();
  return rows;
}

const std::vector<Reading>& samples() {
  static const std::vector<Reading> all = {
      make_reading("kitchen", "temp", Value::of_float64(21.5)),
      make_reading("kitchen", "count", Value::of_int64(-7)),
      make_reading("kitchen", "door", Value::of_bool(true)),
      make_reading("a,b", "say \"hi\"", Value::of_text("two\nlines, \"quoted\" \\ back")),
      make_reading("cam", "shot", Value::of_bytes("\xff\xd8", "image/jpeg")),
      make_reading("cam", "raw", Value::of_bytes("", wire::kDefaultContentType)),
      make_reading("k", "empty", Value::of_text("")),
  };
  return all;
}

}  // namespace

TEST_CASE("format: names lead to formats") {
  for (const char* name : {"csv", "ndjson", "json", "line"}) {
    CHECK(wire::parse_reading_format(name).ok());
  }
  for (const char* name : {"", "CSV", "table", "xml"}) {
    CHECK(wire::parse_reading_format(name).status().code() == StatusCode::InvalidArgument);
  }
  CHECK(wire::content_type_of(ReadingFormat::Ndjson) == "application/x-ndjson");
}

TEST_CASE("format: csv") {
  CHECK(format(ReadingFormat::Csv, samples()) ==
        "namespace,device,sensor,time,value,type\n"
        "default,kitchen,temp,2025-11-20T14:00:00.000000000Z,21.5,float\n"
        "default,kitchen,count,2025-11-20T14:00:00.000000000Z,-7,int\n"
        "default,kitchen,door,2025-11-20T14:00:00.000000000Z,true,bool\n"
        "default,\"a,b\",\"say \"\"hi\"\"\",2025-11-20T14:00:00.000000000Z,"
        "\"two\nlines, \"\"quoted\"\" \\ back\",text\n"
        "default,cam,shot,2025-11-20T14:00:00.000000000Z,/9g=,bytes;image/jpeg\n"
        "default,cam,raw,2025-11-20T14:00:00.000000000Z,,bytes\n"
        "default,k,empty,2025-11-20T14:00:00.000000000Z,\"\",text\n");
  CHECK(format(ReadingFormat::Csv, {}) == "namespace,device,sensor,time,value,type\n");
}

TEST_CASE("format: ndjson is what the contract shows") {
  CHECK(
      format(ReadingFormat::Ndjson, samples()) ==
      R"({"namespace":"default","device":"kitchen","sensor":"temp","time":"2025-11-20T14:00:00.000000000Z","value":21.5})"
      "\n"
      R"({"namespace":"default","device":"kitchen","sensor":"count","time":"2025-11-20T14:00:00.000000000Z","value":-7,"type":"int"})"
      "\n"
      R"({"namespace":"default","device":"kitchen","sensor":"door","time":"2025-11-20T14:00:00.000000000Z","value":true})"
      "\n"
      R"({"namespace":"default","device":"a,b","sensor":"say \"hi\"","time":"2025-11-20T14:00:00.000000000Z","value":"two\nlines, \"quoted\" \\ back"})"
      "\n"
      R"({"namespace":"default","device":"cam","sensor":"shot","time":"2025-11-20T14:00:00.000000000Z","value":"/9g=","type":"bytes","content_type":"image/jpeg"})"
      "\n"
      R"({"namespace":"default","device":"cam","sensor":"raw","time":"2025-11-20T14:00:00.000000000Z","value":"","type":"bytes","content_type":"application/octet-stream"})"
      "\n"
      R"({"namespace":"default","device":"k","sensor":"empty","time":"2025-11-20T14:00:00.000000000Z","value":""})"
      "\n");
  CHECK(format(ReadingFormat::Ndjson, {}).empty());
}

TEST_CASE("format: json is one array") {
  CHECK(format(ReadingFormat::Json, {}) == "[]\n");
  const std::string text = format(ReadingFormat::Json, samples());
  CHECK(text.starts_with("[\n{\"namespace\""));
  CHECK(text.ends_with("}\n]\n"));
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
  REQUIRE(wire::decode_readings_json(text, {}, batch, outcome).ok());
  CHECK(outcome.good == samples().size());
}

TEST_CASE("format: line protocol leads back to the same series") {
  CHECK(format(ReadingFormat::Line,
               {
                   make_reading("kitchen", "temp", Value::of_float64(21.5)),
                   make_reading("kitchen", "count", Value::of_int64(-7)),
                   make_reading("kitchen", "door", Value::of_bool(false)),
                   make_reading("a b", "c, d=e", Value::of_float64(1)),
                   make_reading("a,=b", "x\\y", Value::of_float64(1)),
                   make_reading("k", "t", Value::of_text("a \"b\" \\ c\nd")),
               }) ==
        "temp,device=kitchen value=21.5 1763647200000000000\n"
        "count,device=kitchen value=-7i 1763647200000000000\n"
        "door,device=kitchen value=false 1763647200000000000\n"
        "c\\,\\ d=e,device=a\\ b value=1 1763647200000000000\n"
        "x\\y,device=a\\,\\=b value=1 1763647200000000000\n"
        "t,device=k value=\"a \\\"b\\\" \\\\ c\nd\" 1763647200000000000\n");
}

TEST_CASE("format: line protocol of several namespaces tells whose readings follow") {
  const auto in = [](std::string_view name, Reading reading) {
    reading.namespace_name = name;
    return reading;
  };
  const std::vector<Reading> readings = {
      in("a b", make_reading("d", "s", Value::of_float64(1))),
      in("a b", make_reading("d", "t", Value::of_float64(2))),
      in("b", make_reading("CONTEXT-DATABASE: x", "s", Value::of_bytes("1", "image/png"))),
      in("b", make_reading("d", "s", Value::of_float64(3))),
  };
  wire::ReadingFormatter formatter(ReadingFormat::Line, wire::LineNamespaces::Told);
  std::string text;
  formatter.begin(text);
  for (const Reading& reading : readings) formatter.reading(reading, text);
  formatter.end(text);
  CHECK(text ==
        "# DML\n# CONTEXT-DATABASE: a b\n"
        "s,device=d value=1 1763647200000000000\nt,device=d value=2 1763647200000000000\n"
        "# CONTEXT-DATABASE: b\n"
        "# CONTEXT-DATABASE: x/s 2025-11-20T14:00:00.000000000Z: line protocol has no form for "
        "bytes\n"
        "s,device=d value=3 1763647200000000000\n");
  for (const wire::LineContexts contexts :
       {wire::LineContexts::Followed, wire::LineContexts::PassedOver}) {
    wire::LineProtocolOptions options;
    options.contexts = contexts;
    wire::LineProtocolDecoder decoder(text, options);
    wire::ReadingBatch batch;
    REQUIRE(decoder.next(batch));
    std::string names;
    for (const Reading& reading : batch.readings) {
      names.append(reading.namespace_name).append(",");
    }
    CHECK(names ==
          (contexts == wire::LineContexts::Followed ? "a b,a b,b," : "default,default,default,"));
    CHECK(decoder.bad_lines() == 0);
  }
}

TEST_CASE("format: what has no line form becomes one comment line") {
  for (const Reading& reading : {
           make_reading("cam", "shot", Value::of_bytes("\n\n", "image/jpeg")),
           make_reading("cam", "#1", Value::of_float64(1)),
           make_reading("cam", "a\\", Value::of_float64(1)),
           make_reading("cam\\", "a", Value::of_float64(1)),
       }) {
    const std::string text = format(ReadingFormat::Line, {reading});
    CAPTURE(text);
    CHECK(text.starts_with("# cam"));
    CHECK(text.find('\n') == text.size() - 1);
  }
}

TEST_CASE("format: doubles print in the shortest form that reads back equal") {
  struct Case {
    double number;
    const char* text;
  };
  for (const Case& c : {
           Case{0, "0"},
           Case{-0.0, "-0.0"},
           Case{21.5, "21.5"},
           Case{21, "21"},
           Case{-1e-7, "-1e-07"},
           Case{1e300, "1e+300"},
           Case{0.1 + 0.2, "0.30000000000000004"},
           Case{18.899999618530273, "18.899999618530273"},
           Case{5e-324, "5e-324"},
       }) {
    std::string text;
    wire::append_double(c.number, text);
    CHECK(text == c.text);
  }
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  SeededRandom random(seed);
  for (int i = 0; i < 50'000; ++i) {
    const double number = std::bit_cast<double>(random.next());
    if (!std::isfinite(number)) continue;
    std::string text;
    wire::append_double(number, text);
    double back = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), back);
    CAPTURE(text);
    REQUIRE(parsed.ptr == text.data() + text.size());
    CHECK(back == number);
  }
}

TEST_CASE("format: random names and texts survive a CSV reader and the JSON decoder") {
  const std::uint64_t seed = 20'251'120;
  INFO("seed " << seed);
  SeededRandom random(seed);
  const std::array<std::string_view, 16> pieces = {
      "a", "B", " ", ",", "\"", "'", "=", "\\", "#", "\xc3\xbc", "\xf0\x9f\x8c\xa1",
      ";", "*", "?", "-", "0"};
  const auto name = [&] {
    std::string text;
    const std::uint64_t length = 1 + random.below(12);
    for (std::uint64_t i = 0; i < length; ++i) text += pieces[random.below(pieces.size())];
    return text;
  };
  for (int i = 0; i < 3'000; ++i) {
    const std::string device = name(), sensor = name(), text = name() + "\n\r\t" + name();
    Value value;
    switch (random.below(5)) {
      case 0: value = Value::of_float64(static_cast<double>(random.next()) / 977.0); break;
      case 1: value = Value::of_int64(static_cast<std::int64_t>(random.next())); break;
      case 2: value = Value::of_bool(random.below(2) == 0); break;
      case 3: value = Value::of_text(text); break;
      default: value = Value::of_bytes(text, "text/x-test"); break;
    }
    Reading reading = make_reading(device, sensor, value);
    reading.time_ns = static_cast<std::int64_t>(random.next());

    const auto rows = read_csv(format(ReadingFormat::Csv, {reading}));
    REQUIRE(rows.size() == 2);
    REQUIRE(rows[1].size() == 6);
    CHECK(rows[1][1] == device);
    CHECK(rows[1][2] == sensor);
    if (value.type == wire::ValueType::Text) CHECK(rows[1][4] == text);

    wire::ReadingBatch batch;
    wire::JsonDecodeOutcome outcome;
    const std::string line = format(ReadingFormat::Ndjson, {reading});
    REQUIRE(wire::decode_readings_json(line, {}, batch, outcome).ok());
    REQUIRE_MESSAGE(outcome.good == 1, line);
    const Reading& back = batch.readings.front();
    CHECK(back.namespace_name == "default");
    CHECK(back.device == device);
    CHECK(back.sensor == sensor);
    CHECK(back.time_ns == reading.time_ns);
    Bytes went_in, came_out;
    wire::append_value(value, went_in);
    wire::append_value(back.value, came_out);
    CHECK(went_in == came_out);
  }
}

TEST_CASE("texts and bytes that come in pieces make what they make as a whole") {
  const std::uint64_t seed = 5;
  SeededRandom random(seed);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    std::string text;
    for (std::uint64_t left = random.below(60); left > 0; --left)
      text += "\"\\\n\r\t\x01,= ab\xc3\xa9"[random.below(14)];
    const Value value = random.below(2) == 0 ? Value::of_text(text) : Value::of_bytes(text, "a/b");
    const bool is_text = value.type == wire::ValueType::Text;
    std::vector<Reading> readings = {make_reading("d", "s", Value::of_float64(1)),
                                     make_reading("d,", "s ", value),
                                     make_reading("d", random.below(4) == 0 ? "#s" : "s", value)};
    for (const ReadingFormat each :
         {ReadingFormat::Csv, ReadingFormat::Ndjson, ReadingFormat::Json, ReadingFormat::Line}) {
      CAPTURE(static_cast<int>(each));
      std::string pieced;
      wire::ReadingFormatter formatter(each);
      formatter.begin(pieced);
      formatter.reading(readings[0], pieced);
      for (std::size_t i = 1; i < readings.size(); ++i) {
        Reading reading = readings[i];
        reading.value.text = {};
        if (!formatter.begin_text(reading, pieced)) continue;
        for (std::string_view rest = text; !rest.empty();) {
          const std::string_view piece = rest.substr(0, 1 + random.below(10));
          formatter.text(reading, piece, pieced);
          rest.remove_prefix(piece.size());
        }
        formatter.end_text(reading, pieced);
      }
      formatter.end(pieced);
      const std::string whole = format(each, readings);
      if (each == ReadingFormat::Csv && is_text) {
        CHECK(read_csv(pieced) == read_csv(whole));
      } else {
        CHECK(pieced == whole);
      }
    }
  }
}

TEST_CASE("many readings of a series print as one by one") {
  SeededRandom random(46);
  for (const ReadingFormat each :
       {ReadingFormat::Csv, ReadingFormat::Ndjson, ReadingFormat::Json, ReadingFormat::Line}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<std::int64_t> times;
      std::vector<std::uint64_t> bits;
      const bool is_float = random.below(2) == 0;
      for (std::uint64_t n = random.below(150); n > 0; --n) {
        times.push_back(kTime + static_cast<std::int64_t>(random.below(200'000'000'000'000)));
        bits.push_back(is_float ? std::bit_cast<std::uint64_t>(
                                      static_cast<double>(random.below(1'000'000)) / 1000)
                                : random.next());
      }
      const wire::Numbers numbers{times, bits, is_float};
      const Reading of = make_reading("pump \"7\"", "a,b", Value::of_bool(true));
      std::string want, got;
      wire::ReadingFormatter one_by_one(each), at_once(each);
      one_by_one.begin(want);
      at_once.begin(got);
      if (round % 2 == 0) {
        one_by_one.reading(of, want);
        at_once.reading(of, got);
      }
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        Reading reading = of;
        reading.time_ns = times[i];
        reading.value = numbers.value(i);
        one_by_one.reading(reading, want);
      }
      at_once.numbers(of, numbers, got);
      one_by_one.end(want);
      at_once.end(got);
      REQUIRE(want == got);
    }
  }
}
