#include "wire/time_text.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <limits>
#include <string>

#include "edgecase/machine.h"
#include "wire/reading_format.h"

using namespace edgecase;
using wire::parse_time_ns;

namespace {
constexpr std::int64_t kFirstTime = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLastTime = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kNow = 1'763'647'200'000'000'000;  // 2025-11-20T14:00:00Z
constexpr std::int64_t kSecond = 1'000'000'000;
}  // namespace

TEST_CASE("time: durations are numbers with units") {
  struct Case {
    const char* text;
    std::int64_t want_ns;
  };
  for (const Case& c : {
           Case{"0s", 0},
           Case{"1ns", 1},
           Case{"250us", 250'000},
           Case{"7ms", 7'000'000},
           Case{"15m", 900 * kSecond},
           Case{"1h30m", 5'400 * kSecond},
           Case{"7d", 604'800 * kSecond},
           Case{"7D", 604'800 * kSecond},
           Case{"250MS", 250'000'000},
           Case{"1w", 604'800 * kSecond},
           Case{"1y", 365 * 86'400 * kSecond},
           Case{"2y6d", 736 * 86'400 * kSecond},
           Case{"1d2h3m4s5ms6us7ns", 93'784'005'006'007},
           Case{"9223372036854775807ns", kLastTime},
       }) {
    CAPTURE(c.text);
    const auto got = wire::parse_duration_ns(c.text);
    REQUIRE(got.ok());
    CHECK(got.value() == c.want_ns);
  }
}

TEST_CASE("time: durations that mean nothing exactly are refused") {
  for (const char* text : {"", "15", "m", "-1s", "+1s", "1.5h", "15 m", "15M", "1H30M", "1mo",
                           "293y", "15m ", " 15m", "1h30", "999999999999d", "9223372036854775808ns",
                           "99999999999999999999s", "106751d24h", "1sm"}) {
    CAPTURE(std::string(text));
    CHECK(wire::parse_duration_ns(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("time: a formatted duration reads back equal") {
  CHECK(wire::format_duration(0) == "0s");
  CHECK(wire::format_duration(5'400 * kSecond) == "1h30m");
  CHECK(wire::format_duration(604'800 * kSecond) == "7d");
  const std::uint64_t seed = 20251120;
  INFO("seed " << seed);
  SeededRandom random(seed);
  for (int i = 0; i < 2'000; ++i) {
    const auto duration = static_cast<std::int64_t>(random.next() >> (1 + random.below(62)));
    CAPTURE(duration);
    const auto got = wire::parse_duration_ns(wire::format_duration(duration));
    REQUIRE(got.ok());
    CHECK(*got == duration);
  }
}

TEST_CASE("time: every way of writing a time") {
  struct Case {
    const char* text;
    std::int64_t want_ns;
  };
  for (const Case& c : {
           Case{"1970-01-01T00:00:00Z", 0},
           Case{"1970-01-01", 0},
           Case{"0", 0},
           Case{"5", 5},
           Case{"1763647200000000000", 1'763'647'200'000'000'000},
           Case{"-10000", -10'000},
           Case{"1000000000", kSecond},
           Case{"20251320", 20'251'320},
           Case{"9223372036854775807", INT64_MAX},
           Case{"-9223372036854775808", INT64_MIN},
           Case{"2025-11-20T14:00:00Z", kNow},
           Case{"2025-11-20t14:00:00z", kNow},
           Case{"2025-11-20 14:00:00Z", kNow},
           Case{"2025-11-20T14:00:00+00:00", kNow},
           Case{"2025-11-20T14:00:00-00:00", kNow},
           Case{"2025-11-20T15:00:00+01:00", kNow},
           Case{"2025-11-20T08:30:00-05:30", kNow},
           Case{"2025-11-21T13:59:00+23:59", kNow},
           Case{"2025-11-20T14:00:00.5Z", kNow + kSecond / 2},
           Case{"2025-11-20T14:00:00.000000001Z", kNow + 1},
           Case{"2025-11-20T14:00:00.123456789Z", kNow + 123'456'789},
           Case{"1969-12-31T23:59:59.999999999Z", -1},
           Case{"1900-02-28", -2'203'977'600 * kSecond},
           Case{"2000-02-29", 951'782'400 * kSecond},
           Case{"2024-02-29", 1'709'164'800 * kSecond},
           Case{"2016-12-31T23:59:60Z", 1'483'228'800 * kSecond},
           Case{"2017-01-01T00:59:60.25+01:00", 1'483'228'800 * kSecond + kSecond / 4},
           Case{"1677-09-21T00:12:43.145224192Z", kFirstTime},
           Case{"2262-04-11T23:47:16.854775807Z", kLastTime},
           Case{"@1763647200", kNow},
           Case{"@1763647200.5", kNow + kSecond / 2},
           Case{"@0.000000001", 1},
           Case{"@-1", -kSecond},
           Case{"@-0.5", -kSecond / 2},
           Case{"@-9223372036.854775808", kFirstTime},
           Case{"@9223372036.854775807", kLastTime},
           Case{"now", kNow},
           Case{"-15m", kNow - 900 * kSecond},
           Case{"-1h30m", kNow - 5'400 * kSecond},
           Case{"+15m", kNow + 900 * kSecond},
           Case{"15m", kNow - 900 * kSecond},
           Case{"1y", kNow - 365 * 86'400 * kSecond},
           Case{"now-15m", kNow - 900 * kSecond},
           Case{"now+1h30m", kNow + 5'400 * kSecond},
           Case{"today", kNow - 14 * 3'600 * kSecond},
           Case{"yesterday", kNow - 38 * 3'600 * kSecond},
           Case{"today-1ns", kNow - 14 * 3'600 * kSecond - 1},
           Case{"yesterday+6h", kNow - 32 * 3'600 * kSecond},
           Case{"2025-11-20T14:00Z", kNow},
           Case{"2025-11-20T15:00+01:00", kNow},
           Case{"2025-11-20T15:00:00+0100", kNow},
           Case{"2025-11-20T15:00:00+01", kNow},
           Case{"2025-11-20T14:00:00,5Z", kNow + kSecond / 2},
           Case{"2025-11-20T14:00:00.1234567899Z", kNow + 123'456'789},
           Case{"@1.7636472e9", kNow},
           Case{"@1763647200.1234567899", kNow + 123'456'789},
       }) {
    CAPTURE(c.text);
    const auto got = parse_time_ns(c.text, kNow);
    REQUIRE_MESSAGE(got.ok(), got.status().to_string());
    CHECK(got.value() == c.want_ns);
  }
}

TEST_CASE("time: what is no time, or none that 64 bits hold") {
  for (const char* text : {
           "",
           "Today",
           "tomorrow",
           "yesterdays",
           "today6h",
           "now-",
           "now-15",
           "now-1h-2h",
           "1h-",
           "now-110000d",
           "2025-11-20T14",
           "2025-11-20T14:00",
           "2025-11-20T14:00:",
           "2025-11-20T14:00,5Z",
           "2025-11-20T14:00:00+1",
           "2025-11-20T14:00:00+010",
           "2025",
           "2025-11",
           "2025-13-01",
           "2025-00-01",
           "2025-01-00",
           "2025-02-29",
           "1900-02-29",
           "2025-04-31",
           "25-11-20",
           "2025-11-20T",
           "2025-11-20T14:00:00",
           "2025-11-20T24:00:00Z",
           "2025-11-20T14:60:00Z",
           "2025-11-20T14:00:61Z",
           "2025-11-20T14:00:60Z",
           "2025-11-20T23:59:60+01:00",
           "2025-11-20T14:00:00.Z",
           "2025-11-20T14:00:00+24:00",
           "2025-11-20T14:00:00+01:60",
           "2025-11-20T14:00:00ZZ",
           "2025-11-20X14:00:00Z",
           "1677-09-21T00:12:43.145224191Z",
           "2262-04-11T23:47:16.854775808Z",
           "1677-09-20",
           "2262-04-12",
           "0000-01-01",
           "9999-12-31T23:59:59Z",
           "@",
           "@x",
           "@--1",
           "@9223372036.854775808",
           "@-9223372036.854775809",
           "@99999999999999999999",
           "-",
           "-15",
           "9223372036854775808",
           "-9223372036854775809",
           "1970",
           "+",
           "-110000d",
           "now ",
           // Seconds, milliseconds, microseconds, and a date, which as nanoseconds are of 1970.
           "1763647200",
           "1763647200000",
           "1763647200000000",
           "20251120",
       }) {
    CAPTURE(std::string(text));
    CHECK(parse_time_ns(text, kNow).status().code() == StatusCode::InvalidArgument);
  }
  CHECK_FALSE(parse_time_ns("-1ns", kFirstTime).ok());
  CHECK_FALSE(parse_time_ns("+1ns", kLastTime).ok());
}

TEST_CASE("time: a zone says whose clock a time without an offset is, and where days begin") {
  const auto berlin = wire::TimeZone::find("Europe/Berlin");
  REQUIRE(berlin.ok());
  const auto hours = [](std::int64_t count) { return count * 3'600 * kSecond; };
  struct Case {
    const char* text;
    std::int64_t want_ns;
  };
  for (const Case& c : {
           Case{"2025-11-20T15:00", kNow},
           Case{"2025-11-20 15:00:00.5", kNow + kSecond / 2},
           Case{"2025-11-20", kNow - hours(15)},
           Case{"2025-07-20T16:00", kNow - hours(123 * 24)},  // summer time
           Case{"2025-11-20T14:00Z", kNow},
           Case{"2025-11-20T16:00+02:00", kNow},
           Case{"today", kNow - hours(15)},
           Case{"yesterday", kNow - hours(39)},
           Case{"today+15h", kNow},
           Case{"now", kNow},
           Case{"-1h", kNow - hours(1)},
           Case{"@1763647200", kNow},
       }) {
    CAPTURE(c.text);
    const auto got = parse_time_ns(c.text, kNow, &*berlin);
    REQUIRE_MESSAGE(got.ok(), got.status().to_string());
    CHECK(*got == c.want_ns);
  }
  // Past midnight there, the day before in UTC.
  const auto late = parse_time_ns("today", kNow + hours(9) + hours(1) / 2, &*berlin);
  REQUIRE(late.ok());
  CHECK(*late == kNow + hours(9));
  // The day that begins summer time has 23 hours.
  const auto after = wire::parse_rfc3339_ns("2026-03-30", &*berlin);
  const auto before = wire::parse_rfc3339_ns("2026-03-29", &*berlin);
  REQUIRE((before.ok() && after.ok()));
  CHECK(*after - *before == hours(23));

  for (const char* text : {"2025-11-20T15:00", "2025-11-20", "today", "yesterday-1h"})
    CHECK_MESSAGE(wire::depends_on_zone(text), text);
  for (const char* text : {"2025-11-20T15:00Z", "now", "-15m", "15m", "@5", "7", "kitchen", ""})
    CHECK_MESSAGE(!wire::depends_on_zone(text), text);
}

TEST_CASE("time: a formatted time reads back equal") {
  const auto check = [](std::int64_t time_ns) {
    std::string text;
    wire::append_time(time_ns, text);
    CAPTURE(std::string(text));
    REQUIRE(text.size() == 30);
    const auto got = wire::parse_rfc3339_ns(text);
    REQUIRE(got.ok());
    CHECK(*got == time_ns);
  };
  for (const std::int64_t time_ns : {kFirstTime, kFirstTime + 1, std::int64_t{-1}, std::int64_t{0},
                                     std::int64_t{1}, kNow, kLastTime - 1, kLastTime}) {
    check(time_ns);
  }
  // Every day for four centuries around the epoch, where the calendar's rules repeat.
  for (std::int64_t day = -106'000; day < 106'000; day += 1) check(day * 86'400 * kSecond);
  const std::uint64_t seed = 7;
  INFO("seed " << seed);
  SeededRandom random(seed);
  for (int i = 0; i < 20'000; ++i) check(static_cast<std::int64_t>(random.next()));
}

TEST_CASE("time: sizes") {
  struct Case {
    const char* text;
    std::uint64_t want;
  };
  for (const Case& c : {
           Case{"0", 0},
           Case{"4096", 4096},
           Case{"10B", 10},
           Case{"1kB", 1'000},
           Case{"1KB", 1'000},
           Case{"1KiB", 1024},
           Case{"64MiB", 64u << 20},
           Case{"64 MiB", 64u << 20},
           Case{"1GB", 1'000'000'000},
           Case{"2GiB", std::uint64_t{2} << 30},
           Case{"1TiB", std::uint64_t{1} << 40},
       }) {
    CAPTURE(c.text);
    const auto got = wire::parse_size_bytes(c.text);
    REQUIRE(got.ok());
    CHECK(*got == c.want);
  }
  for (const char* text : {"", "MiB", "-1", "1.5GiB", "1 ", "1  MiB", "64mib", "64M", "1XB",
                           "99999999999999999999", "99999999999TiB"}) {
    CAPTURE(std::string(text));
    CHECK(wire::parse_size_bytes(text).status().code() == StatusCode::InvalidArgument);
  }
  CHECK(wire::format_size(0) == "0 B");
  CHECK(wire::format_size(1023) == "1023 B");
  CHECK(wire::format_size(64u << 20) == "64 MiB");
  CHECK(wire::format_size(1536) == "1.5 KiB");
  CHECK(wire::format_size((1u << 20) - 1) == "1024 KiB");
  CHECK(wire::format_size(~std::uint64_t{0}) == "16777216 TiB");
}
