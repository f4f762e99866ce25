// tidy: allow-file line-length: expected lines of output are kept whole
#include "wire/reading_json.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/test_data.h"
#include "support/test_share.h"
#include "wire/reading.h"
#include "wire/reading_format.h"

using namespace edgecase;
using wire::ValueType;

namespace {

struct Decoded {
  Status status;
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
};

Decoded decode(std::string_view body, const wire::JsonDecodeOptions& options = {}) {
  Decoded decoded;
  decoded.status = wire::decode_readings_json(body, options, decoded.batch, decoded.outcome);
  return decoded;
}

std::string object_with(const std::string& members) {
  return R"({"device":"d","sensor":"s",)" + members + "}";
}

}  // namespace

TEST_CASE("readings json: one object") {
  const auto got = decode(
      R"({"namespace":"home","device":"kitchen","sensor":"temp","time":"2025-11-20T14:00:00Z","value":21.5})");
  REQUIRE(got.status.ok());
  REQUIRE(got.batch.readings.size() == 1);
  const wire::Reading& reading = got.batch.readings[0];
  CHECK(reading.namespace_name == "home");
  CHECK(reading.device == "kitchen");
  CHECK(reading.sensor == "temp");
  CHECK(reading.time_ns == 1'763'647'200'000'000'000);
  CHECK(reading.value.type == ValueType::Float64);
  CHECK(reading.value.float64 == 21.5);
}

TEST_CASE("readings json: what a value means") {
  Decoded got;  // values borrow from it
  const auto value_of = [&got](const std::string& members) {
    got = decode(object_with(members));
    CAPTURE(members);
    REQUIRE_MESSAGE(got.outcome.good == 1,
                    (got.outcome.errors.empty() ? "" : got.outcome.errors[0].message));
    return got.batch.readings[0].value;
  };
  CHECK(value_of(R"("value":1)").type == ValueType::Float64);
  CHECK(value_of(R"("value":1)").float64 == 1.0);
  CHECK(value_of(R"("value":-0.0)").float64 == 0.0);
  CHECK(std::signbit(value_of(R"("value":-0.0)").float64));
  CHECK(value_of(R"("value":18446744073709551616)").float64 == 18446744073709551616.0);
  CHECK(value_of(R"("value":1e300)").float64 == 1e300);
  CHECK(value_of(R"("value":3,"type":"float")").type == ValueType::Float64);
  CHECK(value_of(R"("type":"int","value":3)").type == ValueType::Int64);
  CHECK(value_of(R"("value":-9223372036854775808,"type":"int")").int64 == INT64_MIN);
  CHECK(value_of(R"("value":9223372036854775807,"type":"int")").int64 == INT64_MAX);
  CHECK(value_of(R"("value":true)").boolean);
  CHECK(value_of(R"("value":false)").type == ValueType::Bool);
  CHECK(value_of(R"("value":"on")").type == ValueType::Text);
  CHECK(value_of(R"("value":"","type":"text")").type == ValueType::Text);
  const auto bytes = value_of(R"("value":"Zm9v","type":"bytes")");
  CHECK(bytes.type == ValueType::Bytes);
  CHECK(bytes.content_type == wire::kDefaultContentType);
  CHECK(value_of(R"("value":"","type":"bytes","content_type":"image/png")").content_type ==
        "image/png");
}

TEST_CASE("readings json: without a time it stays unset, whole numbers are nanoseconds") {
  CHECK_FALSE(decode(object_with(R"("value":1)")).batch.readings[0].time_ns.has_value());
  CHECK(decode(object_with(R"("value":1,"time":-5)")).batch.readings[0].time_ns == -5);
}

TEST_CASE("readings json: what is wrong with one reading") {
  struct Case {
    std::string body;
    const char* why;
  };
  const std::string long_name(1'025, 'x');
  for (const Case& c : {
           Case{R"({"sensor":"s","value":1})", "\"device\" is missing"},
           Case{R"({"device":"d","value":1})", "\"sensor\" is missing"},
           Case{R"({"device":"d","sensor":"s"})", "\"value\" is missing"},
           Case{"{}", "\"device\" is missing"},
           Case{R"({"device":1,"sensor":"s","value":1})", "\"device\" is no string"},
           Case{R"({"device":"","sensor":"s","value":1})", "empty"},
           Case{R"({"device":"a/b","sensor":"s","value":1})", "'/'"},
           Case{R"({"device":"a\u0000b","sensor":"s","value":1})", "control"},
           Case{R"({"device":"a\u0085","sensor":"s","value":1})", "control"},
           Case{R"({"device":"d","sensor":")" + long_name + R"(","value":1})", "1025 bytes"},
           Case{object_with(R"("value":null)"), "null"},
           Case{object_with(R"("value":{"a":1})"), "member"},
           Case{object_with(R"("value":[1])"), "member"},
           Case{object_with(R"("value":1,"vaule":2)"), "unknown key \"vaule\""},
           Case{object_with(R"("value":1,"value":2)"), "comes twice"},
           Case{object_with(R"("value":1,"time":1.5)"), "\"time\""},
           Case{object_with(R"("value":NaN)"), "no value"},
           Case{object_with(R"("value":-Infinity)"), "no value"},
           Case{object_with(R"("value":)"), "no value"},
           Case{object_with(R"("value":1e999)"), "too large"},
           Case{object_with(R"("value":0x1F)"), "hexadecimal"},
           Case{object_with(R"("value":1,"time":NaN)"), "no value"},
           Case{object_with(R"("value":1,"time":9223372036854775808)"), "64-bit"},
           Case{object_with(R"("value":1,"time":"yesterday")"), "is none of: "},
           Case{object_with(R"("value":1,"time":"now")"), "is none of: "},
           Case{object_with(R"("value":1,"time":"2025-02-30")"), "calendar"},
           Case{object_with(R"("value":1,"type":"double")"), "unknown type"},
           Case{object_with(R"("value":1,"type":7)"), "\"type\" is no string"},
           Case{object_with(R"("value":1.5,"type":"int")"), "whole number"},
           Case{object_with(R"("value":"1","type":"int")"), "whole number"},
           Case{object_with(R"("value":9223372036854775808,"type":"int")"), "64-bit"},
           Case{object_with(R"("value":"1","type":"float")"), "no number"},
           Case{object_with(R"("value":1,"type":"bool")"), "neither"},
           Case{object_with(R"("value":1,"type":"text")"), "no string"},
           Case{object_with(R"("value":"*","type":"bytes")"), "base64"},
           Case{object_with(R"("value":1,"type":"bytes")"), "base64"},
           Case{object_with(R"("value":"","type":"bytes","content_type":1)"), "no string"},
           Case{object_with(R"("value":"","type":"bytes","content_type":"a\nb")"), "ASCII"},
           Case{object_with(R"("value":"","content_type":"image/png")"), "needs"},
           Case{object_with(R"("value":1,"type":"float","content_type":"x")"), "belongs"},
       }) {
    CAPTURE(c.body);
    const auto got = decode(c.body);
    REQUIRE(got.status.ok());
    CHECK(got.batch.readings.empty());
    CHECK(got.outcome.bad == 1);
    REQUIRE(got.outcome.errors.size() == 1);
    CHECK(got.outcome.errors[0].line == 1);
    CAPTURE(got.outcome.errors[0].message);
    CHECK(got.outcome.errors[0].message.find(c.why) != std::string::npos);
  }
}

TEST_CASE("readings json: what is no JSON leaves nothing behind") {
  for (const std::string& body : {
           std::string(),
           std::string(" \r\n\t"),
           std::string("x"),
           std::string("1"),
           std::string("\"text\""),
           std::string("null"),
           std::string("{"),
           std::string(R"({"device":"d","sensor":"s","value":1)"),
           std::string(R"({"device":"d","sensor":"s","value":1,5})"),
           std::string(R"({"device":"d","sensor":"s","value":"1"5})"),
           std::string(R"({"device":"d","sensor":"s","value":"\ud800"})"),
           std::string("{\"device\":\"\xff\",\"sensor\":\"s\",\"value\":1}"),
           std::string(R"({'device':'d'})"),
           std::string(R"([{"device":"d","sensor":"s","value":1},)"),
           std::string(R"([{"device":"d","sensor":"s","value":1}] x)"),
           std::string(R"([[{"device":"d","sensor":"s","value":1}]])"),
           std::string(R"({"device":"d","sensor":"s","value":1} {})"),
           std::string("[") + std::string(100, '['),
           std::string(100'000, '['),
           R"({"device":"d","sensor":"s","value":)" + std::string(100'000, '['),
       }) {
    CAPTURE(body.substr(0, 80));
    const auto got = decode(body);
    CHECK(got.status.code() == StatusCode::InvalidArgument);
    CHECK(got.batch.readings.empty());
    CHECK(got.outcome.good == 0);
  }
}

TEST_CASE("readings json: an array names its bad elements by number") {
  const auto got = decode(R"([
    {"device":"d","sensor":"s","value":1},
    {"device":"d","sensor":"s"},
    7,
    {"device":"d","sensor":"s","value":{"deep":[{"er":1}]}},
    {"device":"d","sensor":"t","value":2}
  ])");
  REQUIRE(got.status.ok());
  CHECK(got.outcome.good == 2);
  CHECK(got.outcome.bad == 3);
  REQUIRE(got.outcome.errors.size() == 3);
  CHECK(got.outcome.errors[0].line == 2);
  CHECK(got.outcome.errors[1].line == 3);
  CHECK(got.outcome.errors[2].line == 4);
  CHECK(got.outcome.errors[0].message.find("element 2: ") == 0);
  CHECK(got.batch.readings[1].sensor == "t");
  CHECK(decode("[]").status.ok());
}

TEST_CASE("readings json: a bad line of NDJSON spoils only itself") {
  const std::string good = R"({"device":"d","sensor":"s","value":1})";
  for (const std::string& bad :
       {std::string(R"({"device":"d")"), std::string("rubbish"), std::string("{}]"), good + "x",
        std::string(R"({"device":"d","sensor":"s","value":1e999})")}) {
    CAPTURE(bad);
    for (const std::string& body :
         {bad + "\n" + good + "\n\n" + good, good + "\r\n" + bad + "\n" + good + "\n"}) {
      const auto got = decode(body);
      REQUIRE(got.status.ok());
      CHECK(got.outcome.good == 2);
      CHECK(got.batch.readings.size() == 2);
      CHECK(got.outcome.bad == 1);
      REQUIRE(got.outcome.errors.size() == 1);
      CHECK(got.outcome.errors[0].line ==
            (body[0] == '{' && body.starts_with(good + "\r") ? 2 : 1));
    }
  }
}

TEST_CASE("readings json: one object over many lines is one reading") {
  const auto got = decode("{\n  \"device\": \"d\",\n  \"sensor\": \"s\",\n  \"value\": 1\n}\n");
  REQUIRE(got.status.ok());
  CHECK(got.outcome.good == 1);
}

TEST_CASE("readings json: only the first errors are named, all are counted") {
  std::string body;
  for (int i = 0; i < 100; ++i) body += "{}\n";
  wire::JsonDecodeOptions options;
  options.errors_max = 5;
  const auto got = decode(body, options);
  REQUIRE(got.status.ok());
  CHECK(got.outcome.bad == 100);
  CHECK(got.outcome.errors.size() == 5);
}

TEST_CASE("readings json: depth is bounded") {
  wire::JsonDecodeOptions options;
  options.depth_max = 3;
  CHECK(decode(object_with(R"("value":[[1]])"), options).status.ok());
  const auto got = decode(object_with(R"("value":[[[1]]])"), options);
  CHECK(got.status.code() == StatusCode::InvalidArgument);
  CHECK(got.status.message().find("deeper than limits.json-depth = 3") != std::string::npos);
}

TEST_CASE("readings json: the default namespace is the caller's") {
  wire::JsonDecodeOptions options;
  options.default_namespace = "home";
  const auto got = decode(object_with(R"("value":1)") + "\n" +
                              R"({"namespace":"other","device":"d","sensor":"s","value":1})",
                          options);
  REQUIRE(got.outcome.good == 2);
  CHECK(got.batch.readings[0].namespace_name == "home");
  CHECK(got.batch.readings[1].namespace_name == "other");
}

TEST_CASE("readings json: real telemetry goes out and comes back unchanged") {
  const auto data = test::read_test_data("mqtt_env_telemetry_h00-12.jsonl.gz");
  if (!data.has_value()) {
    MESSAGE("skipped: no test data");
    return;
  }
  std::istringstream lines(*data);
  std::string line;
  wire::ReadingBatch batch;
  const std::uint64_t messages = test::share_of(20'000);
  for (std::uint64_t left = messages; left > 0 && std::getline(lines, line); --left) {
    const auto message = nlohmann::json::parse(line);
    const std::string_view device = batch.keep(message["device_id"].get<std::string>());
    const double unix_seconds = message["ts"].get<double>();
    const auto time_ns = static_cast<std::int64_t>(unix_seconds * 1e9);
    for (const auto& [name, value] : message["data"].items()) {
      const auto stored = value.is_boolean() ? wire::Value::of_bool(value.get<bool>())
                                             : wire::Value::of_float64(value.get<double>());
      batch.readings.push_back({"default", device, batch.keep(name), time_ns, stored});
    }
  }
  REQUIRE(batch.readings.size() > 5 * messages);
  for (const auto format : {wire::ReadingFormat::Ndjson, wire::ReadingFormat::Json}) {
    std::string text;
    wire::ReadingFormatter formatter(format);
    formatter.begin(text);
    for (const wire::Reading& reading : batch.readings) formatter.reading(reading, text);
    formatter.end(text);
    const auto got = decode(text);
    REQUIRE(got.status.ok());
    REQUIRE(got.batch.readings.size() == batch.readings.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < batch.readings.size(); ++i) {
      const wire::Reading& a = batch.readings[i];
      const wire::Reading& b = got.batch.readings[i];
      Bytes a_value, b_value;
      wire::append_value(a.value, a_value);
      wire::append_value(b.value, b_value);
      const bool same = a.device == b.device && a.sensor == b.sensor && a.time_ns == b.time_ns &&
                        a_value == b_value;
      different += same ? 0u : 1u;
    }
    CHECK(different == 0);
  }
}

TEST_CASE("readings json: an array is handed over in slices") {
  struct Case {
    std::size_t text_bytes;  // of each value
    std::size_t readings;
    std::size_t slices;
  };
  for (const Case& c : {Case{1, 3 * wire::kJsonSliceReadings + 5, 3}, Case{300'000, 9, 2},
                        Case{1, wire::kJsonSliceReadings - 1, 0}}) {
    std::string body = "[";
    for (std::size_t i = 0; i < c.readings; ++i) {
      body += R"({"device":"d","sensor":"s","time":)" + std::to_string(i) + R"(,"value":")" +
              std::string(c.text_bytes, 'x') + "\"},";
    }
    body.back() = ']';
    std::size_t slices = 0;
    std::int64_t next = 0;
    const auto check = [&](const wire::ReadingBatch& batch) {
      for (const wire::Reading& reading : batch.readings) {
        REQUIRE(reading.time_ns == next++);
        REQUIRE(reading.device == "d");
        REQUIRE(reading.sensor == "s");
        REQUIRE(reading.value.text.size() == c.text_bytes);
      }
    };
    wire::JsonDecodeOptions options;
    options.take_slice = [&](const wire::ReadingBatch& batch) {
      ++slices;
      check(batch);
      return ok();
    };
    const auto got = decode(body, options);
    REQUIRE(got.status.ok());
    check(got.batch);
    CHECK(slices == c.slices);
    CHECK(got.outcome.good == c.readings);
    CHECK(static_cast<std::size_t>(next) == c.readings);
    if (c.slices == 0) continue;
    // Whoever takes them may fail, and is asked no more.
    slices = 0;
    options.take_slice = [&slices](const wire::ReadingBatch&) {
      ++slices;
      return busy("no room");
    };
    CHECK(decode(body, options).status.code() == StatusCode::Busy);
    CHECK(slices == 1);
  }
}

TEST_CASE("readings json: a number without end is refused before it is read") {
  const std::string text(2u << 20, '1');
  const auto got = decode(object_with(R"("value":)" + text));
  CHECK(got.status.code() == StatusCode::InvalidArgument);
  CHECK(got.status.message().find("a number has more than 4096 characters") != std::string::npos);
  // Not so a text, whatever is in it.
  const auto good = decode(object_with(R"("value":"\\\")" + text + R"(\"")"));
  REQUIRE(good.status.ok());
  CHECK(good.outcome.good == 1);
  CHECK(good.batch.readings.at(0).value.text.size() == text.size() + 3);
}

TEST_CASE("readings json: where lines are asked for an array is a bad line") {
  wire::JsonDecodeOptions options;
  options.form = wire::JsonDecodeOptions::Form::Lines;
  const auto got = decode("[1]\n" + object_with(R"("value":1)") + "\n", options);
  REQUIRE(got.status.ok());
  CHECK(got.outcome.good == 1);
  CHECK(got.outcome.bad == 1);
}

TEST_CASE("readings json: a column is many readings of a series") {
  const auto got = decode(
      R"({"namespace":"n","device":"d","sensor":"s","measurement":"cpu","tags":{"host":"d"},"field":"s","time":"1970-01-01T00:00:01Z","steps":[5,0,-3,NaN],"values":[1,2.5,null,-4],"type":"float"})"
      "\n"
      R"({"device":"d","sensor":"t","time":7,"values":["a\n"]})"
      "\n"
      R"({"values":[true,false,1],"steps":[1,1],"device":"d","sensor":"b","time":1,"type":"bool"})"
      "\n");
  REQUIRE(got.status.ok());
  // A step that is none moves all behind it.
  CHECK(got.outcome.bad == 2);
  CHECK(got.outcome.good == 3);
  const auto good = decode(
      R"({"device":"d","sensor":"s","measurement":"cpu","tags":{"host":"d"},"field":"s","time":"1970-01-01T00:00:01Z","steps":[5,0,-3],"values":[1,2.5,null,-4]})");
  REQUIRE(good.status.ok());
  REQUIRE(good.batch.readings.size() == 3);
  CHECK(good.outcome.bad == 1);
  CHECK(good.outcome.errors.at(0).message == "value 3: \"value\" is null");
  const std::int64_t times_ns[] = {1'000'000'000, 1'000'000'005, 1'000'000'002};
  const double values[] = {1, 2.5, -4};
  for (std::size_t i = 0; i < 3; ++i) {
    const wire::Reading& reading = good.batch.readings[i];
    CHECK(reading.time_ns == times_ns[i]);
    CHECK(reading.value.float64 == values[i]);
    REQUIRE(reading.identity != nullptr);
    CHECK(reading.identity == good.batch.readings[0].identity);  // one copy serves all
  }
}

TEST_CASE("readings json: what is wrong with a column") {
  struct Case {
    const char* members;
    const char* problem;
  };
  for (const Case& c :
       {Case{R"("time":1,"values":[])", "one fewer is right"},
        Case{R"("time":1,"values":[1,2])", "one fewer is right"},
        Case{R"("time":1,"values":[1],"steps":[1])", "one fewer is right"},
        Case{R"("time":1,"values":[1,2],"steps":1)", "one fewer is right"},
        Case{R"("time":1,"values":1)", "no array"}, Case{R"("values":[1])", "need a \"time\""},
        Case{R"("time":null,"values":[1])", "need a \"time\""},
        Case{R"("time":1,"values":[1],"value":1)", "in one object"},
        Case{R"("time":1,"value":1,"steps":[])", "are missing"},
        Case{R"("time":1,"values":[1,2],"steps":["1"])", "whole nanoseconds"},
        Case{R"("time":1,"values":[1,2],"steps":[1.5])", "whole nanoseconds"},
        Case{R"("time":1,"values":[1,2],"steps":[9223372036854775807])", "outside"},
        Case{R"("time":1,"values":[1,2],"steps":[9223372036854775808])", "whole"},
        Case{R"("time":1,"values":[[1]])", "cannot be a reading's value"},
        Case{R"("time":1,"values":[{"a":1}])", "cannot be a reading's value"},
        Case{R"("time":1,"values":[1],"values":[1])", "comes twice"}}) {
    CAPTURE(c.members);
    const auto got = decode(object_with(c.members));
    REQUIRE(got.status.ok());
    CHECK(got.outcome.good == 0);
    REQUIRE(got.outcome.errors.size() == 1);
    CHECK(got.outcome.errors[0].message.find(c.problem) != std::string::npos);
  }
  const auto in_array = decode("[" + object_with(R"("time":1,"values":[1])") + "]");
  CHECK(in_array.outcome.bad == 1);
  std::string most = R"("time":1,"values":[1)", steps = "1";
  for (std::size_t i = 1; i < wire::kJsonColumnMax; ++i) most += ",1";
  for (std::size_t i = 2; i < wire::kJsonColumnMax; ++i) steps += ",1";
  CHECK(decode(object_with(most + R"(],"steps":[)" + steps + "]")).outcome.good ==
        wire::kJsonColumnMax);
  CHECK(decode(object_with(most + R"(,1],"steps":[1,)" + steps + "]")).outcome.bad == 1);
}

TEST_CASE("readings json: columns are handed over between lines, a bad line takes none back") {
  constexpr std::size_t kValues = 10'000;
  std::string values = "0", steps;
  for (std::size_t i = 1; i < kValues; ++i) {
    values += ",1";
    steps += steps.empty() ? "1" : ",1";
  }
  const std::string column =
      object_with(R"("time":1,"values":[)" + values + R"(],"steps":[)" + steps + "]") + "\n";
  std::size_t taken = 0;
  std::size_t most = 0;
  wire::JsonDecodeOptions options;
  options.take_lines = [&](const wire::ReadingBatch& batch) {
    taken += batch.readings.size();
    most = std::max(most, batch.readings.size());
    return ok();
  };
  const auto got = decode(column + column + column + "rubbish\n" + column, options);
  REQUIRE(got.status.ok());
  CHECK(got.outcome.good == 4 * kValues);
  CHECK(got.outcome.bad == 1);
  CHECK(taken + got.batch.readings.size() == 4 * kValues);
  CHECK(most < wire::kJsonSliceReadings + wire::kJsonColumnMax);
  options.take_lines = [](const wire::ReadingBatch&) { return busy("no room"); };
  CHECK(decode(column + column + column, options).status.code() == StatusCode::Busy);
}
