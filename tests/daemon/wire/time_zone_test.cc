#include "wire/time_text.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>

using namespace edgecase;
using wire::TimeZone;

namespace {

std::int64_t seconds_of(const std::string& text) {
  const auto time_ns = wire::parse_rfc3339_ns(text);
  REQUIRE(time_ns.ok());
  return *time_ns / 1'000'000'000;
}

void append_big_endian(std::int64_t value, int bytes, std::string& out) {
  for (int i = bytes - 1; i >= 0; --i) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

struct Type {
  std::int64_t offset;
};
struct Change {
  std::int64_t at;
  int type;
};

std::string block(const std::vector<Change>& changes, const std::vector<Type>& types, char version,
                  int time_bytes) {
  std::string out = "TZif";
  out.push_back(version);
  out.append(15, '\0');
  for (const std::size_t count : {std::size_t{0}, std::size_t{0}, std::size_t{0}, changes.size(),
                                  types.size(), std::size_t{4}}) {
    append_big_endian(static_cast<std::int64_t>(count), 4, out);
  }
  for (const Change& change : changes) append_big_endian(change.at, time_bytes, out);
  for (const Change& change : changes) out.push_back(static_cast<char>(change.type));
  for (const Type& type : types) {
    append_big_endian(type.offset, 4, out);
    out.append(2, '\0');
  }
  out.append("LMT", 4);
  return out;
}

std::string zone_file(const std::vector<Change>& changes, const std::vector<Type>& types,
                      const std::string& rule) {
  return block({}, {{0}}, '2', 4) + block(changes, types, '2', 8) + "\n" + rule + "\n";
}

const char* const kCentralEurope = "CET-1CEST,M3.5.0,M10.5.0/3";

}  // namespace

TEST_CASE("time zones: fixed offsets and UTC need no file") {
  struct Case {
    const char* name;
    std::int64_t offset;
  };
  for (const Case& c : {Case{"UTC", 0}, Case{"Z", 0}, Case{"+02:00", 7'200}, Case{"-0330", -12'600},
                        Case{"+05", 18'000}, Case{"-12:45", -45'900}}) {
    CAPTURE(c.name);
    const auto zone = TimeZone::find(c.name, "/nowhere");
    REQUIRE(zone.ok());
    CHECK(zone->offset_at(0) == c.offset);
    CHECK(zone->to_utc(1'000'000) == 1'000'000 - c.offset);
  }
  for (const char* name : {"", "+2", "+25:00", "+02:60", "02:00", "../etc/passwd", "/etc/passwd",
                           "Europe//Berlin", "Europe/", "Berlin Mitte", "Europe/Berlin"}) {
    CAPTURE(name);
    CHECK(TimeZone::find(name, "/nowhere").status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("time zones: the rule behind the last change of a file") {
  struct Case {
    const char* rule;
    const char* utc;
    std::int64_t offset;
  };
  for (const Case& c : {
           Case{kCentralEurope, "2026-03-29T00:59:59Z", 3'600},
           Case{kCentralEurope, "2026-03-29T01:00:00Z", 7'200},
           Case{kCentralEurope, "2026-10-25T00:59:59Z", 7'200},
           Case{kCentralEurope, "2026-10-25T01:00:00Z", 3'600},
           Case{kCentralEurope, "2100-07-01T00:00:00Z", 7'200},
           // The south: summer over the turn of the year.
           Case{"AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-01-01T00:00:00Z", 39'600},
           Case{"AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-07-01T00:00:00Z", 36'000},
           // Ireland, whose winter is the exception; Greenland, whose hour is before midnight.
           Case{"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-01-15T12:00:00Z", 0},
           Case{"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-15T12:00:00Z", 3'600},
           Case{"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -7'200},
           Case{"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00Z", -3'600},
           Case{"<+0545>-5:45", "2026-07-15T12:00:00Z", 20'700},
           Case{"AAA0BBB,J60/0,J61/0", "2028-03-01T12:00:00Z", 3'600},
           Case{"AAA0BBB,59/0,60/0", "2028-02-29T12:00:00Z", 3'600},
       }) {
    CAPTURE(c.rule);
    CAPTURE(c.utc);
    const auto zone = TimeZone::parse(zone_file({}, {{0}}, c.rule));
    REQUIRE_MESSAGE(zone.ok(), zone.status().message());
    CHECK(zone->offset_at(seconds_of(c.utc)) == c.offset);
  }
}

TEST_CASE("time zones: local times that clocks show twice or never") {
  const auto zone = TimeZone::parse(
      zone_file({{seconds_of("2025-10-26T01:00:00Z"), 0}}, {{3'600}, {7'200}}, kCentralEurope));
  REQUIRE(zone.ok());
  struct Case {
    const char* local;
    const char* utc;
  };
  for (const Case& c : {
           Case{"2026-01-15T12:00:00Z", "2026-01-15T11:00:00Z"},
           Case{"2026-07-15T12:00:00Z", "2026-07-15T10:00:00Z"},
           Case{"2026-03-29T01:59:59Z", "2026-03-29T00:59:59Z"},
           Case{"2026-03-29T02:30:00Z", "2026-03-29T01:30:00Z"},  // never shown: 03:30 of summer
           Case{"2026-03-29T03:00:00Z", "2026-03-29T01:00:00Z"},
           Case{"2026-10-25T01:59:59Z", "2026-10-24T23:59:59Z"},
           Case{"2026-10-25T02:30:00Z", "2026-10-25T00:30:00Z"},  // shown twice: the first
           Case{"2026-10-25T03:00:00Z", "2026-10-25T02:00:00Z"},
       }) {
    CAPTURE(c.local);
    CHECK(zone->to_utc(seconds_of(c.local)) == seconds_of(c.utc));
  }
}

TEST_CASE("time zones: a file that is none is refused") {
  const std::string good = zone_file({{0, 0}, {10, 1}}, {{0}, {3'600}}, kCentralEurope);
  REQUIRE(TimeZone::parse(good).ok());
  CHECK(TimeZone::parse(good)->offset_at(5) == 0);
  CHECK(TimeZone::parse(block({{0, 0}}, {{60}}, '\0', 4))->offset_at(5) == 60);
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(!TimeZone::parse(std::string_view(good).substr(0, size)).ok());
  }
  CHECK(!TimeZone::parse(zone_file({{10, 0}, {10, 0}}, {{0}}, "")).ok());
  CHECK(!TimeZone::parse(zone_file({{10, 1}}, {{0}}, "")).ok());
  CHECK(!TimeZone::parse(zone_file({}, {{1'000'000}}, "")).ok());
  for (const char* rule :
       {"CE-1", "CET", "CET-1CEST", "CET-1CEST,M13.1.0,M1.1.0", "CET-1CEST,M3.6.0,M1.1.0",
        "CET-1CEST,J0,J1", "CET-1CEST,M3.5.0,M10.5.0x"}) {
    CAPTURE(rule);
    CHECK(!TimeZone::parse(zone_file({}, {{0}}, rule)).ok());
  }
}

TEST_CASE("time zones: those of this machine") {
  if (!std::filesystem::exists("/usr/share/zoneinfo/Europe/Berlin")) {
    MESSAGE("skipped: tzdata is not installed");
    return;
  }
  const auto zone = TimeZone::find("Europe/Berlin");
  REQUIRE(zone.ok());
  CHECK(zone->to_utc(seconds_of("2026-07-15T12:00:00Z")) == seconds_of("2026-07-15T10:00:00Z"));
  CHECK(zone->to_utc(seconds_of("2060-07-15T12:00:00Z")) == seconds_of("2060-07-15T10:00:00Z"));
  CHECK(zone->to_utc(seconds_of("1985-01-15T12:00:00Z")) == seconds_of("1985-01-15T11:00:00Z"));
  CHECK(!TimeZone::find("Europe").ok());
  CHECK(!TimeZone::find("Europe/Nowhere").ok());
  CHECK(!TimeZone::find("tzdata.zi").ok());
}

TEST_CASE("time zones: this machine's own, as TZ or its file says") {
  constexpr std::int64_t kWinter = 1'763'647'200;  // 2025-11-20T14:00:00Z
  struct Case {
    const char* tz;
    const char* path;
    std::int64_t want;
  };
  for (const Case& c : {
           Case{nullptr, "/usr/share/zoneinfo/Asia/Tokyo", 9 * 3'600},
           Case{nullptr, "/nowhere/localtime", 0},
           Case{"", "/usr/share/zoneinfo/Asia/Tokyo", 0},
           Case{"Asia/Tokyo", "/nowhere", 9 * 3'600},
           Case{":Asia/Tokyo", "/nowhere", 9 * 3'600},
           Case{"/usr/share/zoneinfo/Asia/Tokyo", "/nowhere", 9 * 3'600},
           Case{"CET-1CEST,M3.5.0,M10.5.0/3", "/nowhere", 3'600},
           Case{"UTC", "/nowhere", 0},
           Case{"<-03>3", "/nowhere", -3 * 3'600},
       }) {
    CAPTURE(std::string(c.tz == nullptr ? "unset" : c.tz));
    const auto zone = wire::TimeZone::local(c.tz, c.path);
    REQUIRE_MESSAGE(zone.ok(), zone.status().to_string());
    CHECK(zone->offset_at(kWinter) == c.want);
  }
  CHECK_FALSE(wire::TimeZone::local("Nowhere/Atall").ok());
  CHECK_FALSE(wire::TimeZone::local("/etc/passwd").ok());
}
