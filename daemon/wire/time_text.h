// Times, durations and sizes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::wire {

class TimeZone;

inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// "15m", "1h30m", "250us": one or more whole numbers with units ns us ms s m h d w y (365 days), no
// sign. Letters of either case, but for M, which may be a month. InvalidArgument for anything else,
// and for what int64 nanoseconds cannot hold.
Result<std::int64_t> parse_duration_ns(std::string_view text);
// "1h30m"; days are the largest unit; reads back equal. `duration_ns` is not negative.
std::string format_duration(std::int64_t duration_ns);

// The grammar of times, wherever one is taken; each function takes what the one above it takes, and
// more. InvalidArgument says what is wrong and what would do. `zone` says whose clock a time
// without an offset is; without one such a time is refused.
//
// RFC 3339, from 1677-09-21T00:12:43.145224192Z to 2262-04-11T23:47:16.854775807Z, and what people
// and devices make of it: a date alone (midnight of the zone, else UTC), a space for `T`, no
// seconds, a comma for the point, `+0100` and `+01`. Digits below a nanosecond are cut. A leap
// second (23:59:60 UTC) is the second after it, as in POSIX time: refusing it would lose the
// reading.
Result<std::int64_t> parse_rfc3339_ns(std::string_view text, const TimeZone* zone = nullptr);
// "@seconds[.decimals]", and whole nanoseconds (not what looks like a year, or like a distance
// without a unit).
Result<std::int64_t> parse_absolute_time_ns(std::string_view text, const TimeZone* zone = nullptr);
// "now", "today", "yesterday" (where the day began in the zone, else in UTC), "-15m" and "15m"
// (before `now_ns`), "+15m", "now-15m", "yesterday+6h". But no whole number that is more likely
// seconds, milliseconds, microseconds (unit_meant()) or a date (20261120).
Result<std::int64_t> parse_time_ns(std::string_view text, std::int64_t now_ns,
                                   const TimeZone* zone = nullptr);
// What a count since 1970 was that was taken for nanoseconds: "unix" where it would be a time
// between 2005 and 2096 if it were seconds, "unix_ms", "unix_us"; else empty.
std::string_view unit_meant(std::int64_t time_ns);
// Whether the text means different instants in different zones.
bool depends_on_zone(std::string_view text);

// The parts of RFC 3339, for who treats them differently: `seconds` are since 1970 as if the clock
// showed UTC.
struct DateTime {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;  // in [0, 1 s)
  std::optional<std::int64_t> offset_seconds;
  bool has_clock = false;  // else a date alone
  bool is_leap_second = false;
};
Result<DateTime> parse_date_time(std::string_view text);
// `text` is what it was made of, for the message.
Result<std::int64_t> instant_of(const DateTime& time, std::string_view text, const TimeZone* zone);

// "64MiB", "1GB", "4096", "64 MiB": bytes. Units B kB MB GB TB KiB MiB GiB TiB.
Result<std::uint64_t> parse_size_bytes(std::string_view text);
std::string format_size(std::uint64_t bytes);  // "64 MiB", "1.5 GiB", for people

// Times that stand for none yet. What arrives without a time while the clock is not trusted is
// stored under one of these, and moved to its own once the clock is right (ingest/redating.h): they
// lie far behind every clock, so that nothing of theirs expires or is evicted meanwhile.
//
// A slot is a span of one boot in which the clock was not trusted: its first nanosecond stands for
// the moment of the first arrival in it.

// Where it is kept what the slots stand for; empty: nothing ever had such a time.
inline constexpr std::string_view kUndatedNamespace = "_undated";

inline constexpr int kUndatedSlotBits = 48;  // 3.26 days; a longer span takes another slot
inline constexpr std::uint32_t kUndatedSlots = 2048;
inline constexpr std::int64_t kUndatedSlotNs = std::int64_t{1} << kUndatedSlotBits;
// From 2225-09-28T23:48:52.247928832Z to 2244-01-04T23:48:04.551352320Z.
inline constexpr std::int64_t kUndatedFromNs = std::int64_t{7} << 60;
inline constexpr std::int64_t kUndatedToNs = kUndatedFromNs + kUndatedSlots * kUndatedSlotNs;

inline bool is_undated_time(std::int64_t time_ns) {
  return kUndatedFromNs <= time_ns && time_ns < kUndatedToNs;
}
// The slot of an undated time.
inline std::uint32_t undated_slot_of(std::int64_t time_ns) {
  return static_cast<std::uint32_t>((time_ns - kUndatedFromNs) >> kUndatedSlotBits);
}
inline std::int64_t undated_slot_first_ns(std::uint32_t slot) {
  return kUndatedFromNs + slot * kUndatedSlotNs;
}

// A place's offsets from UTC, and what its clocks show: for times that devices write without one.
// Read from the system's time zone files (TZif, RFC 8536): the library of C knows only the zone of
// the process.
//
// Immutable once made, so any thread may use it.

// The most that is read of a zone file; the largest there is has 4 KiB.
inline constexpr std::size_t kZoneFileMaxBytes = 64u << 10;

class TimeZone {
 public:
  // "UTC", "Z", "+02:00", "-0330", "+02", or the name of a file below `directory`:
  // "Europe/Berlin". InvalidArgument: no such zone, or no zone's file.
  static Result<TimeZone> find(std::string_view name,
                               const std::string& directory = "/usr/share/zoneinfo");
  // The zone of this machine, as the library of C finds it: `tz` is the variable TZ, or null; where
  // that says nothing, the file `path`. A zone of no file is written as POSIX does:
  // "CET-1CEST,M3.5.0,M10.5.0/3".
  static Result<TimeZone> local(const char* tz, const std::string& path = "/etc/localtime");
  // The bytes of such a file.
  static Result<TimeZone> parse(std::string_view file);

  // East of UTC, at an instant in seconds since 1970.
  std::int64_t offset_at(std::int64_t utc_seconds) const;

  // The instant at which clocks of the place show `local_seconds` (since 1970, as if it were UTC).
  // What they show twice, when summer time ends, is the first of both. What they never show, when
  // it begins, is as if the clock had not been moved yet: 02:30 is 03:30 of summer time.
  std::int64_t to_utc(std::int64_t local_seconds) const;

 private:
  struct Change {
    std::int64_t at = 0;      // UTC; this offset holds from then on
    std::int64_t offset = 0;  // seconds east
  };
  // One end of summer time, by the rule that holds behind the last change of the file.
  struct YearDay {
    enum class Kind : std::uint8_t { Julian, Zero, Month } kind = Kind::Zero;
    std::int64_t day = 0;  // of Julian 1..365 without leap days, of Zero 0..365
    std::int64_t month = 0, week = 0, weekday = 0;
    std::int64_t seconds = 7'200;  // of that day, local time before the change
  };
  struct Rule {
    std::int64_t offset = 0, summer_offset = 0;
    bool has_summer = false;
    YearDay summer_begins, summer_ends;
  };

  static Result<TimeZone> read(const std::string& path, const std::string& name);
  Status parse_block(std::string_view block, std::size_t time_bytes, std::size_t& used);
  Status parse_rule(std::string_view text);
  static bool take_year_day(std::string_view& text, YearDay& day);
  static std::int64_t seconds_of(const YearDay& day, std::int64_t year);
  std::int64_t offset_by_rule(std::int64_t utc_seconds) const;

  std::int64_t first_offset_ = 0;  // before the first change
  std::vector<Change> changes_;
  bool has_rule_ = false;
  Rule rule_;
};

}  // namespace edgecase::wire
