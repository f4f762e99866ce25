// A place's offsets from UTC, and what its clocks show: for times that devices write without one.
// Read from the system's time zone files (TZif, RFC 8536): the library of C knows only the zone of
// the process.
//
// Immutable once made, so any thread may use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::wire {

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
