#include "mqtt/topic_rule.h"

#include <doctest/doctest.h>

#include <limits>

using namespace edgecase;
using mqtt::TimeFormat;

TEST_CASE("message time: exact in every format") {
  struct Case {
    const char* text;
    TimeFormat format;
    std::int64_t want;
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  for (const Case& c : {
           Case{"1594598424.5023336", TimeFormat::Unix, 1'594'598'424'502'333'600},
           Case{"1594598424.5023336", TimeFormat::Auto, 1'594'598'424'502'333'600},
           Case{"1594598424", TimeFormat::Auto, 1'594'598'424 * kSecond},
           Case{"1594598424502", TimeFormat::Auto, 1'594'598'424'502'000'000},
           Case{"1594598424502333", TimeFormat::Auto, 1'594'598'424'502'333'000},
           Case{"1594598424502333600", TimeFormat::Auto, 1'594'598'424'502'333'600},
           Case{"9007199254740993", TimeFormat::UnixNs, 9'007'199'254'740'993},
           Case{"9223372036854775807", TimeFormat::UnixNs,
                std::numeric_limits<std::int64_t>::max()},
           Case{"-9223372036854775808", TimeFormat::UnixNs,
                std::numeric_limits<std::int64_t>::min()},
           Case{"1.5e3", TimeFormat::Unix, 1'500 * kSecond},
           Case{"0", TimeFormat::Auto, 0},
           Case{"-1.25", TimeFormat::Unix, -1'250'000'000},
           Case{"0.0000000019", TimeFormat::Unix, 1},
           Case{"1.5", TimeFormat::UnixMs, 1'500'000},
           Case{"2026-11-20T14:00:00Z", TimeFormat::Rfc3339, 1'795'183'200 * kSecond},
           Case{"2026-11-20T15:00:00+01:00", TimeFormat::Auto, 1'795'183'200 * kSecond},
           Case{"2026-11-20T15:00:00.250+0100", TimeFormat::Auto,
                1'795'183'200 * kSecond + 250'000'000},
           Case{"2026-11-20T15:00:00,250+01", TimeFormat::Auto,
                1'795'183'200 * kSecond + 250'000'000},
           Case{"2026-11-20T14:00Z", TimeFormat::Auto, 1'795'183'200 * kSecond},
           Case{"2026-11-20T14:00:00.1234567899Z", TimeFormat::Auto,
                1'795'183'200 * kSecond + 123'456'789},
           Case{"2026-11-20 08:30:00-05:30", TimeFormat::Auto, 1'795'183'200 * kSecond},
           Case{"2026-11-20T14:00:00.123456789Z", TimeFormat::Auto,
                1'795'183'200 * kSecond + 123'456'789},
           Case{"1969-12-31T23:59:59.5Z", TimeFormat::Auto, -500'000'000},
           Case{"2024-02-29T00:00:00Z", TimeFormat::Auto, 1'709'164'800 * kSecond},
       }) {
    CAPTURE(c.text);
    const auto got = mqtt::parse_message_time_ns(c.text, c.format);
    REQUIRE(got.ok());
    CHECK(*got == c.want);
  }
}

TEST_CASE("message time: refuses what is no time") {
  struct Case {
    const char* text;
    TimeFormat format = TimeFormat::Auto;
  };
  for (const Case& c :
       {Case{""}, Case{"yesterday"}, Case{"2026-11-20"}, Case{"2026-11-20T14:00:00"},
        Case{"2026-13-20T14:00:00Z"}, Case{"2026-02-29T14:00:00Z"}, Case{"2026-11-20T24:00:00Z"},
        Case{"2026-11-20T14:00:00.Z"}, Case{"2026-11-20T14:00:00Zx"}, Case{"9999-01-01T00:00:00Z"},
        Case{"1e30"}, Case{"9223372036854775808", TimeFormat::UnixNs},
        Case{"2026-11-20T14:00:00Z", TimeFormat::Unix}, Case{"1594598424", TimeFormat::Rfc3339},
        Case{"1.2.3"}, Case{"1e"}, Case{"--1"}}) {
    CAPTURE(c.text);
    CHECK(!mqtt::parse_message_time_ns(c.text, c.format).ok());
  }
  CHECK(mqtt::is_time_without_offset("2026-11-20T14:00:00"));
  CHECK(!mqtt::is_time_without_offset("2026-11-20T14:00:00Z"));
}
