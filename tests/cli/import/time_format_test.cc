#include "import/csv_decoder.h"

#include <doctest/doctest.h>

#include <string>

#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

std::int64_t instant(std::string_view text) {
  const auto time = wire::parse_rfc3339_ns(text);
  REQUIRE(time.ok());
  return *time;
}

// What a format reads; INT64_MIN: it refuses it.
std::int64_t read_as(std::string_view format, std::string_view text,
                     const wire::TimeZone* zone = nullptr) {
  const auto parsed = TimeFormat::parse(format);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  const auto time = parsed->read(text, zone);
  return time.ok() ? *time : INT64_MIN;
}

TEST_CASE("time format: counts since 1970, with and without decimals") {
  struct Count {
    const char* format;
    const char* text;
    std::int64_t time_ns;
  };
  const Count rows[] = {
      {"unix", "1763647200", 1'763'647'200'000'000'000},
      {"unix", " 1763647200.5 ", 1'763'647'200'500'000'000},
      {"unix", "-1.000000001", -1'000'000'001},
      {"unix_ms", "1763647200123", 1'763'647'200'123'000'000},
      {"unix_us", "1763647200123456.789", 1'763'647'200'123'456'789},
      {"unix_ns", "1763647200123456789", 1'763'647'200'123'456'789},
      {"unix", "9223372037", INT64_MIN},  // beyond 2262
      {"unix", "", INT64_MIN},
      {"unix", "yesterday", INT64_MIN},
      {"unix", "12:00", INT64_MIN},
  };
  for (const Count& row : rows) {
    CAPTURE(row.format);
    CAPTURE(row.text);
    CHECK(read_as(row.format, row.text) == row.time_ns);
  }
}

TEST_CASE("time format: patterns say each part once, and days that there are") {
  const wire::TimeZone utc = *wire::TimeZone::find("UTC");
  struct Pattern {
    const char* format;
    const char* text;
    const char* means;  // null: refused
  };
  const Pattern rows[] = {
      {"%d.%m.%Y %H:%M", "20.11.2025 14:05", "2025-11-20T14:05:00Z"},
      {"%d.%m.%Y %H:%M", "1.2.2025 4:05", "2025-02-01T04:05:00Z"},
      {"%d.%m.%Y %H:%M", "  01.02.2025   04:05 ", "2025-02-01T04:05:00Z"},
      {"%m/%d/%y %I:%M:%S %p", "11/20/25 02:05:06 PM", "2025-11-20T14:05:06Z"},
      {"%m/%d/%Y %I:%M %p", "11/20/2025 12:00 am", "2025-11-20T00:00:00Z"},
      {"%m/%d/%Y %I:%M %p", "11/20/2025 12:00 p.m.", "2025-11-20T12:00:00Z"},
      {"%F %T.%f", "2025-11-20 14:05:06.1234567891", "2025-11-20T14:05:06.123456789Z"},
      {"%FT%T%z", "2025-11-20T14:05:06+0130", "2025-11-20T12:35:06Z"},
      {"%FT%T%z", "2025-11-20T14:05:06-01:30", "2025-11-20T15:35:06Z"},
      {"%FT%T%z", "2025-11-20T14:05:06Z", "2025-11-20T14:05:06Z"},
      {"%d %b %Y", "5 Mar 2025", "2025-03-05T00:00:00Z"},
      {"%B %d, %Y %R", "september 30, 2025 23:59", "2025-09-30T23:59:00Z"},
      {"%Y-%j %H", "2024-366 24", "2025-01-01T00:00:00Z"},
      {"%Y %m %d %H", "2013 3 1 0", "2013-03-01T00:00:00Z"},
      {"%y%m%d%H%M%S", "691231235960", "1970-01-01T00:00:00Z"},
      {"%y %m %d", "68 1 1", "2068-01-01T00:00:00Z"},
      {"at %s", "at 1763647200", "2025-11-20T14:00:00Z"},
      {"100%% %Y-%m-%d", "100% 2025-01-02", "2025-01-02T00:00:00Z"},
      {"%d.%m.%Y", "31.04.2025", nullptr},
      {"%d.%m.%Y", "29.02.2025", nullptr},
      {"%Y-%j", "2025-366", nullptr},
      {"%d.%m.%Y", "2025-11-20", nullptr},
      {"%d.%m.%Y", "20.11.2025 14:00", nullptr},
      {"%d.%m.%Y", "", nullptr},
      {"%d.%m.%Y %H:%M", "20.11.2025 25:00", nullptr},
      {"%Y-%m-%d %H:%M", "2025-01-01 24:01", nullptr},
      {"%Y-%m-%d %H %p", "2025-01-01 13 PM", nullptr},
      {"%Y-%m-%d", "1500-01-01", nullptr},  // before what 64 bits hold
      {"%d %b %Y", "5 Mrz 2025", nullptr},
  };
  for (const Pattern& row : rows) {
    CAPTURE(row.format);
    CAPTURE(row.text);
    CHECK(read_as(row.format, row.text, &utc) == (row.means ? instant(row.means) : INT64_MIN));
  }
}

TEST_CASE("time format: a text without an offset needs a zone, and obeys it") {
  CHECK(read_as("%d.%m.%Y %H:%M", "20.11.2025 14:05") == INT64_MIN);
  const auto berlin = wire::TimeZone::find("Europe/Berlin");
  REQUIRE(berlin.ok());
  CHECK(read_as("%d.%m.%Y %H:%M", "20.07.2025 14:05", &*berlin) == instant("2025-07-20T12:05:00Z"));
  CHECK(read_as("%d.%m.%Y %H:%M", "20.11.2025 14:05", &*berlin) == instant("2025-11-20T13:05:00Z"));
  CHECK(read_as("%FT%T%z", "2025-07-20T14:05:06Z", &*berlin) == instant("2025-07-20T14:05:06Z"));
}

TEST_CASE("time format: what says no day, or has an unknown letter, is none") {
  for (const char* const text :
       {"", "unix_s", "%H:%M", "%m-%d", "%Y", "%Q %Y-%m-%d", "%Y-%m-%d %", "%d %H", "seconds"}) {
    CAPTURE(text);
    CHECK_FALSE(TimeFormat::parse(text).ok());
  }
}

TEST_CASE("time format: the unit of a count that was taken for nanoseconds is found") {
  CHECK(wire::unit_meant(1'763'647'200) == "unix");
  CHECK(wire::unit_meant(1'763'647'200'000) == "unix_ms");
  CHECK(wire::unit_meant(1'763'647'200'000'000) == "unix_us");
  for (const std::int64_t ns :
       {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{5}, std::int64_t{1'099'999'999},
        std::int64_t{4'000'000'000}, std::int64_t{1'763'647'200'000'000'000}, INT64_MAX}) {
    CAPTURE(ns);
    CHECK(wire::unit_meant(ns).empty());
  }
}

}  // namespace
}  // namespace edgecase::cli
