#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "daemon/influxql/function_question.h"
#include "influxql/statement.h"
#include "influxql/time_windows.h"

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

using namespace edgecase;
using influxql::QuestionPoint;
using influxql::rows_of;
using influxql::Window;
using influxql::WindowGrid;

namespace {

struct ZoneCase {
  std::string statement, answer;
};

// Every half hour of five days in March and of five in October of 2021: 1, 2, 3, ...
std::vector<QuestionPoint> half_hours() {
  std::vector<QuestionPoint> points;
  for (const double first : {1616716800.0, 1635465600.0}) {
    for (int i = 0; i < 5 * 48; ++i)
      points.push_back({first + i * 1800.0, "", std::to_string(i + 1), "", "", ""});
  }
  return points;
}

}  // namespace

TEST_CASE("window_grid: days of a time zone, as influxd has them where clocks are changed") {
  for (const ZoneCase& each : std::vector<ZoneCase>{
           {"select count(v), first(v), last(v) from m where time>='2021-03-26' and "
            "time<'2021-03-31' group by time(1d) tz('Europe/Berlin')",
            "1616713200: 46 1 46; 1616799600: 48 47 94; 1616886000: 46 95 140; 1616968800: 48 141 "
            "188; 1617055200: 48 189 236"},
           {"select count(v), mean(v) from m where time>='2021-10-29' and time<'2021-11-03' group "
            "by time(1d) tz('Europe/Berlin')",
            "1635458400: 44 22.5; 1635544800: 48 68.5; 1635631200: 50 117.5; 1635721200: 48 166.5; "
            "1635807600: 48 214.5"},
           {"select count(v), mean(v) from m where time>='2021-10-29' and time<'2021-11-03' group "
            "by time(1d) order by time desc tz('Europe/Berlin')",
            "1635807600: 48 214.5; 1635721200: 48 166.5; 1635631200: 50 117.5; 1635544800: 48 "
            "68.5; 1635458400: 44 22.5"},
           {"select count(v), mean(v) from m where time>='2021-03-26' and time<'2021-03-31' group "
            "by time(1d) order by time desc tz('Europe/Berlin')",
            "1617055200: 48 212.5; 1616968800: 48 164.5; 1616886000: 46 117.5; 1616799600: 48 "
            "70.5; 1616713200: 46 23.5"},
           {"select count(v), mean(v) from m where time>='2021-03-27T18:00:00Z' and "
            "time<'2021-03-28T12:00:00Z' group by time(6h) tz('Europe/Berlin')",
            "1616864400: 10 89.5; 1616886000: 10 99.5; 1616904000: 12 110.5; 1616925600: 4 118.5"},
           {"select count(v), mean(v) from m where time>='2021-03-27T22:00:00Z' and "
            "time<'2021-03-28T04:00:00Z' group by time(1h) tz('Europe/Berlin')",
            "1616882400: 2 93.5; 1616886000: 2 95.5; 1616889600: 2 97.5; 1616893200: 2 99.5; "
            "1616896800: 2 101.5; 1616900400: 2 103.5"},
           {"select count(v), mean(v) from m where time>='2021-10-30T22:00:00Z' and "
            "time<'2021-10-31T05:00:00Z' group by time(1h) tz('Europe/Berlin')",
            "1635631200: 2 93.5; 1635634800: 2 95.5; 1635638400: 2 97.5; 1635642000: 2 99.5; "
            "1635645600: 2 101.5; 1635649200: 2 103.5; 1635652800: 2 105.5"},
           {"select count(v), mean(v) from m where time>='2021-10-30T22:00:00Z' and "
            "time<'2021-10-31T05:00:00Z' group by time(2h) tz('Europe/Berlin')",
            "1635631200: 4 94.5; 1635638400: 6 99.5; 1635649200: 4 104.5"},
           {"select count(v), mean(v) from m where time>='2021-03-27T18:00:00Z' and "
            "time<'2021-03-28T08:00:00Z' group by time(2h) tz('Europe/Berlin')",
            "1616864400: 2 85.5; 1616871600: 4 88.5; 1616878800: 4 92.5; 1616886000: 4 96.5; "
            "1616893200: 2 99.5; 1616896800: 4 102.5; 1616904000: 4 106.5; 1616911200: 4 110.5"},
           {"select count(v), mean(v) from m where time>='2021-03-26' and time<'2021-03-31' group "
            "by time(1d,6h) tz('Europe/Berlin')",
            "1616648400: 10 5.5; 1616734800: 48 34.5; 1616821200: 48 82.5; 1616904000: 0 null; "
            "1616907600: 46 129.5; 1616990400: 48 176.5; 1617076800: 36 218.5"},
           {"select count(v), mean(v) from m where time>='2021-10-29' and time<'2021-11-03' group "
            "by time(1d,6h) tz('America/New_York')",
            "1635415200: 12 14.5; 1635501600: 48 44.5; 1635588000: 48 92.5; 1635674400: 48 140.5; "
            "1635760800: 48 188.5; 1635847200: 28 226.5"},
           {"select count(v), mean(v) from m where time>='2021-03-26' and time<'2021-04-12' group "
            "by time(1w) tz('Europe/Berlin')",
            "1616626800: 240 120.5; 1617228000: 0 null; 1617832800: 0 null"},
           {"select max(v), min(v) from m where time>='2021-03-26' and time<'2021-03-31' group by "
            "time(1d) tz('Australia/Lord_Howe')",
            "1616677200: 26 1; 1616763600: 74 27; 1616850000: 122 75; 1616936400: 170 123; "
            "1617022800: 218 171"},
           {"select integral(v,1h) from m where time>='2021-03-26' and time<'2021-03-31' group by "
            "time(1d) tz('Europe/Berlin')",
            "1616713200: 552; 1616799600: 1704; 1616886000: 2714; 1616968800: 3960; 1617055200: "
            "4993.75"},
           {"select derivative(mean(v),1h) from m where time>='2021-10-29' and time<'2021-11-03' "
            "group by time(1d) tz('Europe/Berlin')",
            "1635544800: 1.91666667; 1635631200: 2.04166667; 1635721200: 1.96; 1635807600: 2"},
           {"select difference(count(v)) from m where time>='2021-10-29' and time<'2021-11-03' "
            "group by time(1d) fill(0) tz('Europe/Berlin')",
            "1635458400: 44; 1635544800: 4; 1635631200: 2; 1635721200: -2; 1635807600: 0"},
           {"select mean(v) from m where time<'2021-03-27T00:00:00Z' group by time(6h) "
            "tz('Europe/Berlin')",
            "1616713200: 5.5; 1616734800: 16.5; 1616756400: 28.5; 1616778000: 40.5; 1616799600: "
            "47.5"},

       }) {
    CHECK_MESSAGE(rows_of(half_hours(), each.statement) == each.answer, each.statement);
  }
}

TEST_CASE("window_grid: at both ends of time nothing overflows") {
  const influxql::TimeSpan all;
  const WindowGrid grid(3'600'000'000'000, 600'000'000'000, nullptr, all);
  for (const std::int64_t time_ns : {influxql::kMinTime, influxql::kMaxTime, std::int64_t{0}}) {
    const Window window = grid.window_of(time_ns);
    CHECK(window.from_ns < window.end_ns);
  }
  const WindowGrid one(0, 0, nullptr, all);
  CHECK(one.window_of(5).from_ns == influxql::kMinTime);
  CHECK(one.shown_time(5) == 0);
}
