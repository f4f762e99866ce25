// What a number as firmware prints it is, by every way in. The same table for people:
// daemon/wire/NUMBERS.md.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "command_options.h"
#include "daemon/mqtt/decoded_text.h"
#include "import/csv_decoder.h"
#include "wire/decimal.h"
#include "wire/line_protocol.h"
#include "wire/reading_json.h"

namespace edgecase::cli {
namespace {

using std::string_literals::operator""s;

std::string value_text(const wire::Value& value) {
  if (value.type == wire::ValueType::Text) return "text";
  if (value.type == wire::ValueType::Bool) return value.boolean ? "true" : "false";
  std::string text;
  wire::append_double(value.float64, text);
  return value.type == wire::ValueType::Float64 ? text : "another type";
}

// The value that stands for `sensor`, or `missing`.
std::string value_of(const wire::ReadingBatch& batch, std::string_view sensor,
                     const char* missing) {
  for (const wire::Reading& reading : batch.readings) {
    if (reading.sensor == sensor) return value_text(reading.value);
  }
  return missing;
}

std::string by_mqtt(const std::string& kind, const std::string& payload, std::string_view sensor) {
  config::MqttRuleSettings rule;
  rule.topic = "{device}";
  rule.payload = kind;
  const auto rules = mqtt::compile_rules({rule});
  REQUIRE(rules.ok());
  wire::ReadingBatch batch;
  const auto result = mqtt::decode_message(*rules, {}, "d", payload, batch);
  if (result.outcome == mqtt::DecodeOutcome::Rejected) {
    CHECK(!result.reason.empty());
    return sensor == "a" ? "all" : "refused";
  }
  if (sensor == "a") CHECK(value_of(batch, "b", "lost") == "1");
  // Nothing goes without being counted.
  const std::string value = value_of(batch, sensor, result.left_out > 0 ? "refused" : "none");
  CHECK((value == "none") == (result.skipped == 1));
  if (value == "refused") CHECK(result.reason.find("/a: ") != std::string::npos);
  return value;
}

std::string by_line(const std::string& text) {
  const std::string body = "m,device=d a=" + text + " 1\nm,device=d b=1 1\n";
  wire::LineProtocolOptions options;
  options.error_limit = 4;
  wire::LineProtocolDecoder decoder(body, options);
  wire::ReadingBatch batch;
  decoder.next(batch);
  CHECK(value_of(batch, "m.b", "lost") == "1");
  return value_of(batch, "m.a", decoder.bad_lines() > 0 ? "refused" : "none");
}

std::string by_csv(const std::string& text) {
  const std::string body = "device,sensor,time,value\nd,a,0,\"" + text + "\"\nd,b,0,1\n";
  auto decoder = CsvDecoder::create(body, "default", 4);
  REQUIRE(decoder.ok());
  wire::ReadingBatch batch;
  decoder->next(batch);
  CHECK(value_of(batch, "b", "lost") == "1");
  CHECK(decoder->bad_lines() + decoder->no_values() + batch.readings.size() == 2);
  return value_of(batch, "a", decoder->bad_lines() > 0 ? "refused" : "none");
}

std::string by_write(const std::string& text) {
  const auto value = parse_value(text, "");
  return !value.ok() || !*value ? "refused" : value_text(**value);
}

std::string by_http(const std::string& text) {
  const std::string body = R"([{"device":"d","sensor":"a","value":)" + text +
                           R"(},{"device":"d","sensor":"b","value":1}])";
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
  if (!wire::decode_readings_json(body, {}, batch, outcome).ok()) return "all";
  CHECK(value_of(batch, "b", "lost") == "1");
  if (outcome.bad > 0) {
    REQUIRE(outcome.errors.size() == 1);
    CHECK(outcome.errors.front().line == 1);
  }
  return value_of(batch, "a", outcome.bad > 0 ? "refused" : "none");
}

// "none": no reading, counted. "refused": it alone, with a reason. "all": with what is beside it.
struct Row {
  std::string text;
  const char* json;
  const char* number;
  const char* automatic;
  const char* line;
  const char* csv;
  const char* write;
  const char* http;
};

Row number(const std::string& text, const char* value) {
  return {text, value, value, value, value, value, value, value};
}
Row number_but_in_lines(const std::string& text, const char* value) {
  return {text, value, value, value, "refused", value, value, value};
}
Row no_value(const std::string& text) {
  return {text, "none", "none", "none", "refused", "none", "refused", "refused"};
}
Row too_large(const std::string& text) {
  return {text, "refused", "refused", "refused", "refused", "refused", "refused", "refused"};
}
Row no_number(const std::string& text) {
  return {text, "refused", "refused", "text", "refused", "text", "text", "refused"};
}

}  // namespace

TEST_CASE("a number as firmware prints it is the same by every way in") {
  const std::vector<Row> rows = {
      number("21.5", "21.5"),
      number("-0", "-0.0"),
      number("-0.0", "-0.0"),
      number("+5", "5"),
      number(".5", "0.5"),
      number("-.5", "-0.5"),
      number("5.", "5"),
      number("007", "7"),
      number("1E+5", "1e+05"),
      number("1e-400", "0"),
      number("9223372036854775807", "9.223372036854775807e18"),
      number("9223372036854775808", "9.223372036854775808e18"),
      number("18446744073709551616", "18446744073709551616"),
      number("123456789012345678901234567890", "1.2345678901234568e29"),
      number("0.1000000000000000055511151231257827", "0.1"),
      number_but_in_lines(" 21.5", "21.5"),
      number("21.5\r\n", "21.5"),  // which ends a line of line protocol
      number_but_in_lines("\t 21.5 \t", "21.5"),
      number_but_in_lines("21.5\0"s, "21.5"),
      number("21.5\r\n\0\0"s, "21.5"),
      number_but_in_lines("\xEF\xBB\xBF"
                          "21.5",
                          "21.5"),
      no_value("nan"),
      no_value("NaN"),
      no_value("NAN"),
      no_value("-nan"),
      no_value("-nan(ind)"),
      no_value("1.#QNAN"),
      no_value("Infinity"),
      no_value("-Infinity"),
      no_value("inf"),
      no_value("-inf"),
      no_value("INF"),
      no_value("ovf"),
      no_value("null"),
      no_value("NULL"),
      no_value(""),
      no_value("  "),
      too_large("1e400"),
      too_large("-1e400"),
      too_large("1" + std::string(400, '0')),
      no_number("0x1F"),
      no_number("0b1"),
      no_number("1_000"),
      no_number("5 \xC2\xB0"
                "C"),
      no_number("5C"),
      no_number("--5"),
      no_number("1e"),
      no_number("1.2.3"),
      no_number("\xD9\xA2\xD9\xA1"),          // Arabic digits
      no_number("\xEF\xBC\x92\xEF\xBC\x91"),  // full-width digits
      no_number("\xE2\x88\x92"
                "5"),          // a minus sign that is none of ASCII
      no_number("5\xC2\xA0"),  // a space that does not break
      {"1,5", "all", "refused", "text", "refused", "refused", "refused", "all"},
      {"true", "true", "refused", "true", "true", "true", "true", "true"},
      {"True", "true", "refused", "text", "true", "true", "text", "true"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    // What is written as the shortest text is compared as the shortest text.
    const auto shortest = [](const char* want) -> std::string {
      double value = 0;
      if (wire::read_number(want, value) != wire::NumberText::Number) return want;
      return value_text(wire::Value::of_float64(value));
    };
    CHECK(by_mqtt("auto", "{\"a\":" + row.text + ",\"b\":1}", "a") == shortest(row.json));
    CHECK(by_mqtt("json", "{\"b\":1,\"a\":" + row.text + "}", "a") == shortest(row.json));
    // An empty message is none at all.
    if (!row.text.empty()) {
      CHECK(by_mqtt("number", row.text, "value") == shortest(row.number));
      CHECK(by_mqtt("auto", row.text, "value") == shortest(row.automatic));
    }
    CHECK(by_line(row.text) == shortest(row.line));
    CHECK(by_csv(row.text) == shortest(row.csv));
    CHECK(by_write(row.text) == shortest(row.write));
    CHECK(by_http(row.text) == shortest(row.http));
  }
}

TEST_CASE("values that are none in JSON cost themselves, wherever they stand") {
  struct Case {
    std::string body;
    std::uint64_t good;
    std::uint64_t bad;
  };
  const std::string one = R"({"device":"d","sensor":"b","value":1})";
  const std::string nan = R"({"device":"d","sensor":"b","value":NaN})";
  for (const Case& c :
       std::vector<Case>{{"[" + nan + "," + one + "," + nan + "]", 1, 2},
                         {"[NaN," + one + "]", 1, 1},
                         {"[" + one + ",1," + nan + "]", 1, 2},
                         {one + "\n" + nan + "\n" + one + "\n", 2, 1},
                         {R"({"device":"d","sensor":"b","value":1,"time":nan})", 0, 1},
                         {R"({"device":"d","sensor":"b","value":+5,"type":"int"})", 1, 0},
                         {R"({"device":"d","sensor":"b","value":NaN,"type":"int"})", 0, 1},
                         {R"({"device":"d","sensor":"b","value":1,"time":null})", 1, 0}}) {
    CAPTURE(c.body);
    wire::ReadingBatch batch;
    wire::JsonDecodeOutcome outcome;
    REQUIRE(wire::decode_readings_json(c.body, {}, batch, outcome).ok());
    CHECK(outcome.good == c.good);
    CHECK(outcome.bad == c.bad);
    CHECK(batch.readings.size() == outcome.good);
  }
}

TEST_CASE("slices that were taken before a NaN are not taken again") {
  std::string body = "[";
  const std::size_t count = wire::kJsonSliceReadings + 10;
  for (std::size_t i = 0; i < count; ++i) {
    body += R"({"device":"d","sensor":"b","time":)" + std::to_string(i) + R"(,"value":1},)";
  }
  body += R"({"device":"d","sensor":"b","value":NaN},{"device":"d","sensor":"c","value":2}])";
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
  std::size_t taken = 0;
  wire::JsonDecodeOptions options;
  options.take_slice = [&taken](const wire::ReadingBatch& slice) {
    taken += slice.readings.size();
    return ok();
  };
  REQUIRE(wire::decode_readings_json(body, options, batch, outcome).ok());
  CHECK(taken == wire::kJsonSliceReadings);
  CHECK(taken + batch.readings.size() == count + 1);
  CHECK(outcome.good == count + 1);
  CHECK(outcome.bad == 1);
}

}  // namespace edgecase::cli
