#include "import/csv_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "support/test_seed.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
namespace {

constexpr std::string_view kHeader = "namespace,device,sensor,time,value,type\n";

struct Decoded {
  std::vector<std::string> lines;  // as ndjson
  std::vector<wire::LineError> errors;
};

Decoded decode(std::string_view body) {
  auto decoder = CsvDecoder::create(body, "plant", 20);
  REQUIRE_MESSAGE(decoder.ok(), decoder.status().message());
  Decoded decoded;
  wire::ReadingFormatter formatter(wire::ReadingFormat::Ndjson);
  wire::ReadingBatch batch;
  while (decoder->next(batch)) {
    CHECK(batch.readings.size() <= CsvDecoder::kReadingsPerSlice);
    for (const wire::Reading& reading : batch.readings) {
      formatter.reading(reading, decoded.lines.emplace_back());
    }
    batch.clear();
  }
  decoded.errors = decoder->errors();
  CHECK(decoder->bad_lines() >= decoded.errors.size());
  return decoded;
}

std::string header_error(std::string_view body) {
  const auto decoder = CsvDecoder::create(body, "plant", 20);
  REQUIRE(!decoder.ok());
  return decoder.status().message();
}

TEST_CASE("csv gives back what the formatter wrote") {
  wire::ReadingBatch batch;
  const auto add = [&batch](wire::Value value) {
    batch.readings.push_back({"a b", "press,1", "t\"x\"", 1'700'000'000'123'456'789, value});
  };
  add(wire::Value::of_float64(-0.0));
  add(wire::Value::of_float64(1e300));
  add(wire::Value::of_int64(INT64_MIN));
  add(wire::Value::of_bool(true));
  for (const char* text :
       {"", " ", "21.5", "true", "line\nbreak", "a,b", "\"", "\"\"", "\r\n", "ü"}) {
    add(wire::Value::of_text(text));
  }
  add(wire::Value::of_bytes(std::string_view("\0\xff", 2), "application/octet-stream"));
  add(wire::Value::of_bytes("jpeg", "image/jpeg;q=\"1\""));

  std::string csv;
  wire::ReadingFormatter writer(wire::ReadingFormat::Csv);
  writer.begin(csv);
  std::vector<std::string> expected;
  for (const wire::Reading& reading : batch.readings) {
    writer.reading(reading, csv);
    wire::ReadingFormatter(wire::ReadingFormat::Ndjson).reading(reading, expected.emplace_back());
  }
  const Decoded decoded = decode(csv);
  CHECK(decoded.errors.empty());
  CHECK(decoded.lines == expected);
}

TEST_CASE("csv columns come in any order, and namespace and type may be missing") {
  const Decoded decoded = decode(
      "\xEF\xBB\xBFvalue,time,sensor,device\r\n21.5,0,t,d\r\n\r\non,1970-01-01T00:00:01Z,t,d");
  REQUIRE(decoded.lines.size() == 2);
  CHECK(decoded.lines[0] ==
        "{\"namespace\":\"plant\",\"device\":\"d\",\"sensor\":\"t\","
        "\"time\":\"1970-01-01T00:00:00.000000000Z\",\"value\":21.5}\n");
  CHECK(decoded.lines[1].find("\"value\":\"on\"") != std::string::npos);
  CHECK(decoded.errors.empty());
}

TEST_CASE("a header that is none says what is missing") {
  CHECK(header_error("").find("empty") != std::string::npos);
  CHECK(header_error("device,sensor,time\n").find("no column value") != std::string::npos);
  CHECK(header_error("device,sensor,time,value,vaule\n").find("\"vaule\"") != std::string::npos);
  CHECK(header_error("device,device,sensor,time,value\n").find("twice") != std::string::npos);
  CHECK(header_error("\"device,sensor,time,value\n").find("quote") != std::string::npos);
}

TEST_CASE("a bad record costs itself alone, and is named by its first line") {
  struct Case {
    const char* record;
    const char* says;
  };
  for (const Case& each : {
           Case{",d,s,0,1", "fields"},
           Case{",d,s,0,1,float,more", "fields"},
           Case{",,s,0,1,float", "device"},
           Case{",d,a/b,0,1,float", "sensor"},
           Case{",d,s,yesterday,1,float", "time"},
           Case{",d,s,,1,float", "time"},
           Case{",d,s,9223372036854775808,1,float", "time"},
           Case{",d,s,0,one,float", "one"},
           Case{",d,s,0,nan,float", "nan"},
           Case{",d,s,0,1.5,int", "1.5"},
           Case{",d,s,0,yes,bool", "yes"},
           Case{",d,s,0,1,number", "number"},
           Case{",d,s,0,***,bytes", ""},
           Case{",d,s,0,\"a\"b,text", "behind"},
           Case{",d,s,0,\"a,text", "never closed"},
       }) {
    CAPTURE(each.record);
    const Decoded decoded = decode(std::string(kHeader) + ",d,s,0,\"two\nlines\",text\n" +
                                   each.record + "\n,d,s,1,2,float\n");
    CHECK(decoded.lines.size() == 2);
    REQUIRE(decoded.errors.size() == 1);
    CHECK(decoded.errors.front().line == 4);
    CHECK(decoded.errors.front().message.find(each.says) != std::string::npos);
  }
}

TEST_CASE("no bytes make the decoder stumble") {
  const std::uint64_t seed = test::test_seed(20261121);
  MESSAGE("EDGECASE_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  constexpr std::string_view kAlphabet = "\",\n\r;d0s1.ft\xff ";
  for (int round = 0; round < 2000; ++round) {
    std::string body(kHeader);
    for (std::uint64_t i = random() % 60; i > 0; --i) {
      body += kAlphabet[random() % kAlphabet.size()];
    }
    CAPTURE(body);
    const auto ends = static_cast<std::size_t>(std::count(body.begin(), body.end(), '\n'));
    const Decoded decoded = decode(body);
    CHECK(decoded.lines.size() + decoded.errors.size() <= ends + 1);
  }
}

}  // namespace
}  // namespace edgecase::cli
