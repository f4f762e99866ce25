#include "influxql/time_condition.h"

#include <doctest/doctest.h>

#include <string>

#include "influxql/parser.h"

using namespace edgecase;

namespace {

constexpr std::int64_t kNow = 1'000'000'000'000;

struct SplitTime {
  influxql::TimeSpan span;
  Result<std::optional<influxql::Expr>> rest = std::optional<influxql::Expr>();
};

SplitTime split(const std::string& where) {
  const auto parsed = influxql::parse_statements("SELECT a FROM m WHERE " + where, 1);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().to_string());
  SplitTime made;
  made.rest = influxql::split_time(*parsed->front().select->where, kNow, nullptr, made.span);
  return made;
}

}  // namespace

TEST_CASE("time_condition: every form of a time narrows the span") {
  CHECK(split("time > 5").span.from_ns == 6);
  CHECK(split("5 <= time").span.from_ns == 5);
  CHECK(split("time < now() - 1s").span.to_ns == kNow - 1'000'000'000 - 1);
  CHECK(split("time >= '1970-01-01T00:00:01Z'").span.from_ns == 1'000'000'000);
  CHECK(split("time <= '1970-01-02'").span.to_ns == 86'400'000'000'000);
  CHECK(split("time >= '1970-01-01 00:00:01'").span.from_ns == 1'000'000'000);
  CHECK(split("time >= '1970-01-01 00:00:01.5'").span.from_ns == 1'500'000'000);
  CHECK(split("time >= '1970-01-01 00:00:01' + 1m").span.from_ns == 61'000'000'000);
  CHECK(split("time >= '1970-01-01T01:00:01+01:00'").span.from_ns == 1'000'000'000);
  CHECK(split("time = 7").span.from_ns == 7);
  CHECK(split("time = 7").span.to_ns == 7);
  const SplitTime both = split("(time > 5 AND a = 1) OR time < 9");
  REQUIRE(both.rest.ok());
  CHECK(both.span.from_ns == 6);
  CHECK(both.span.to_ns == 8);
  CHECK(both.rest->has_value());
  CHECK_FALSE(split("time > 5 AND time < 9").rest->has_value());
}

TEST_CASE("time_condition: what is no time, and a comparison of times that is none, are errors") {
  CHECK_FALSE(split("time != 5").rest.ok());
  CHECK_FALSE(split("time > 'soon'").rest.ok());
  CHECK_FALSE(split("time > 9223372036854775807 + 1").rest.ok());
  CHECK(split("time > true").rest.status().message() ==
        "invalid operation: time and *influxql.BooleanLiteral are not compatible");
  for (const char* text : {"1970-01-01T00:00:01", "1970-01-01 00:00:01Z", "1970-13-01",
                           "1970-01-01x", "9999-01-01 00:00:00"}) {
    CAPTURE(text);
    CHECK(split("time > '" + std::string(text) + "'").rest.status().message() ==
          "invalid timestamp string");
  }
  for (const char* text : {"", "1970-1-1", "197a-01-01"}) {
    CAPTURE(text);
    CHECK(split("time > '" + std::string(text) + "'").rest.status().message() ==
          "invalid operation: time and *influxql.StringLiteral are not compatible");
  }
}
