#include "wire/time_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "wire/decimal.h"

namespace edgecase::wire {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kNow = "now", kToday = "today", kYesterday = "yesterday";

struct Unit {
  std::string_view name;
  std::int64_t ns;
};
// Longer names first where one begins with another, so that "ms" is not "m" and a rest.
constexpr std::array kUnits = {
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", kNanosecondsPerSecond},
    Unit{"m", 60 * kNanosecondsPerSecond},
    Unit{"h", 3'600 * kNanosecondsPerSecond},
    Unit{"d", 86'400 * kNanosecondsPerSecond},
    Unit{"w", 7 * 86'400 * kNanosecondsPerSecond},
    Unit{"y", 365 * 86'400 * kNanosecondsPerSecond},
};

std::string quoted(std::string_view text) {
  constexpr std::size_t kShownBytes = 64;  // a message repeats input, but not all of it
  if (text.size() <= kShownBytes) return "\"" + std::string(text) + "\"";
  return "\"" + std::string(text.substr(0, kShownBytes)) + "...\"";
}

Status bad_duration(std::string_view text, std::string_view why) {
  return invalid_argument("duration " + quoted(text) + " " + std::string(why) +
                          "; write it like 15m, 1h30m, 250us, 7d");
}

Status bad_time(std::string_view text, std::string_view why) {
  return invalid_argument("time " + quoted(text) + " " + std::string(why));
}

constexpr std::string_view kOutOfRange =
    "is outside 1677-09-21T00:12:43.145224192Z .. 2262-04-11T23:47:16.854775807Z";

// Takes decimal digits off the front of `rest`; false on overflow or none.
bool take_number(std::string_view& rest, std::int64_t& number) {
  number = 0;
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) {
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_add_overflow(number, rest[digits] - '0', &number)) {
      return false;
    }
    ++digits;
  }
  rest.remove_prefix(digits);
  return digits != 0;
}

// Takes exactly `digits` digits.
bool take_fixed(std::string_view& rest, std::size_t digits, std::int64_t& number) {
  if (rest.size() < digits) return false;
  number = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (!is_digit(rest[i])) return false;
    number = number * 10 + (rest[i] - '0');
  }
  rest.remove_prefix(digits);
  return true;
}

bool take_character(std::string_view& rest, char wanted) {
  if (rest.empty() || rest.front() != wanted) return false;
  rest.remove_prefix(1);
  return true;
}

// After the point: digits, as nanoseconds. Those below a nanosecond are cut.
bool take_fraction(std::string_view& rest, std::int64_t& nanoseconds) {
  std::int64_t unit = kNanosecondsPerSecond / 10;
  std::size_t digits = 0;
  nanoseconds = 0;
  for (; digits < rest.size() && is_digit(rest[digits]); ++digits) {
    nanoseconds += (rest[digits] - '0') * unit;
    unit /= 10;
  }
  rest.remove_prefix(digits);
  return digits != 0;
}

// Days from 1970-01-01 in the proleptic Gregorian calendar. Years begin in March here, so that the
// leap day is the last of a year and month lengths follow one formula.
std::int64_t days_from_date(std::int64_t year, std::int64_t month, std::int64_t day) {
  if (month <= 2) --year;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t month_from_march = (month + 9) % 12;
  const std::int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  constexpr std::int64_t kDaysPerEra = 146'097;
  constexpr std::int64_t kEpochDay = 719'468;  // 1970-01-01, counted from 0000-03-01
  return era * kDaysPerEra + day_of_era - kEpochDay;
}

std::int64_t days_in_month(std::int64_t year, std::int64_t month) {
  constexpr std::array<std::int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[static_cast<std::size_t>(month - 1)];
}

// `nanoseconds` in [0, 1 s). False when int64 cannot hold the result.
bool combine(std::int64_t seconds, std::int64_t nanoseconds, std::int64_t& time_ns) {
  // Counting a negative time from the second above keeps the product in range to the very end.
  if (seconds < 0 && nanoseconds > 0) {
    ++seconds;
    nanoseconds -= kNanosecondsPerSecond;
  }
  return !__builtin_mul_overflow(seconds, kNanosecondsPerSecond, &time_ns) &&
         !__builtin_add_overflow(time_ns, nanoseconds, &time_ns);
}

Result<std::int64_t> parse_unix_ns(std::string_view text) {
  const std::optional<ExactDecimal> seconds = read_exact_decimal(text.substr(1));
  if (!seconds) return bad_time(text, "is not @seconds, like @1763647200 or @1763647200.5");
  const std::optional<std::int64_t> time_ns = scaled(*seconds, 9);
  if (!time_ns) return bad_time(text, kOutOfRange);
  return *time_ns;
}

// "-9999"
constexpr std::size_t kShortNumberMax = 5;

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

struct ClockTime {
  std::int64_t hour = 0, minute = 0, second = 0, nanoseconds = 0;
  std::optional<std::int64_t> offset_seconds;
};

// "Z", "+01:00", "+0100" or "+01"; nothing else is left.
bool take_offset(std::string_view rest, std::optional<std::int64_t>& offset_seconds) {
  if (rest == "Z" || rest == "z") {
    offset_seconds = 0;
    return true;
  }
  const std::int64_t sign = rest.front() == '-' ? -1 : 1;
  if (rest.front() != '+' && rest.front() != '-') return false;
  rest.remove_prefix(1);
  std::int64_t hours = 0, minutes = 0;
  if (!take_fixed(rest, 2, hours) || hours > 23) return false;
  if (!rest.empty()) {
    take_character(rest, ':');
    if (!take_fixed(rest, 2, minutes) || minutes > 59) return false;
  }
  offset_seconds = sign * (hours * 3'600 + minutes * 60);
  return rest.empty();
}

// "14:00:00.5+01:00", "14:00"
Status take_clock_time(std::string_view text, std::string_view rest, ClockTime& clock) {
  const bool has_minutes = take_fixed(rest, 2, clock.hour) && take_character(rest, ':') &&
                           take_fixed(rest, 2, clock.minute);
  const bool has_seconds = has_minutes && take_character(rest, ':');
  if (!has_minutes || (has_seconds && !take_fixed(rest, 2, clock.second))) {
    return bad_time(text, "is not RFC 3339, like 2026-11-20T14:00:00Z");
  }
  if (has_seconds && (take_character(rest, '.') || take_character(rest, ',')) &&
      !take_fraction(rest, clock.nanoseconds)) {
    return bad_time(text, "needs digits after the point");
  }
  if (!rest.empty() && !take_offset(rest, clock.offset_seconds)) {
    const bool is_offset = rest.front() == '+' || rest.front() == '-';
    return bad_time(text, is_offset ? "has a wrong offset; write it like Z or +01:00"
                                    : "has something behind its end");
  }
  if (clock.hour > 23 || clock.minute > 59 || clock.second > 60) {
    return bad_time(text, "has an hour, minute or second that no clock shows");
  }
  return ok();
}

// The day that `now_ns` is in, or one of those before it, where it begins in the zone.
Result<std::int64_t> day_ns(std::string_view text, std::int64_t now_ns, std::int64_t days_before,
                            const TimeZone* zone) {
  const auto floor_div = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  const std::int64_t now_seconds = floor_div(now_ns, kNanosecondsPerSecond);
  const std::int64_t offset = zone == nullptr ? 0 : zone->offset_at(now_seconds);
  const std::int64_t midnight = (floor_div(now_seconds + offset, 86'400) - days_before) * 86'400;
  std::int64_t time_ns = 0;
  if (!combine(zone == nullptr ? midnight : zone->to_utc(midnight), 0, time_ns))
    return bad_time(text, kOutOfRange);
  return time_ns;
}

// "-15m" or "+1h", from `from_ns` on.
Result<std::int64_t> moved(std::string_view text, std::string_view distance, std::int64_t from_ns) {
  EC_ASSIGN_OR_RETURN(const std::int64_t distance_ns, parse_duration_ns(distance.substr(1)));
  std::int64_t time_ns = 0;
  const bool overflow = distance.front() == '-'
                            ? __builtin_sub_overflow(from_ns, distance_ns, &time_ns)
                            : __builtin_add_overflow(from_ns, distance_ns, &time_ns);
  if (overflow) return bad_time(text, kOutOfRange);
  return time_ns;
}

bool is_signed(std::string_view text) {
  return text.starts_with('-') || text.starts_with('+');
}

char lower_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// "15m": numbers with units, as no date is.
bool looks_like_duration(std::string_view text) {
  const std::size_t unit = text.find_first_not_of("0123456789");
  if (unit == 0 || unit == std::string_view::npos) return false;
  const char letter = lower_letter(text[unit]);
  return letter >= 'a' && letter <= 'z' && letter != 't' && letter != 'z';
}

// `name` at the front of `rest`, in letters of either case.
bool begins_with_unit(std::string_view rest, std::string_view name) {
  return rest.size() >= name.size() &&
         std::equal(name.begin(), name.end(), rest.begin(),
                    [](char wanted, char c) { return wanted == lower_letter(c); });
}

}  // namespace

Result<std::int64_t> parse_duration_ns(std::string_view text) {
  if (text.empty()) return bad_duration(text, "is empty");
  std::int64_t total = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (!is_digit(rest.front())) return bad_duration(text, "is not numbers with units");
    std::int64_t number = 0;
    if (!take_number(rest, number)) return bad_duration(text, "is too long");
    const Unit* found = nullptr;
    for (const Unit& unit : kUnits) {
      const bool whole = begins_with_unit(rest, unit.name) &&
                         (rest.size() == unit.name.size() || is_digit(rest[unit.name.size()]));
      if (whole) found = &unit;
    }
    if (found != nullptr && found->name == "m" && rest.front() == 'M')
      return bad_duration(text, "has an M, which may be minutes (m) or months (30d)");
    if (found == nullptr) return bad_duration(text, "needs units of ns us ms s m h d w y");
    rest.remove_prefix(found->name.size());
    if (__builtin_mul_overflow(number, found->ns, &number) ||
        __builtin_add_overflow(total, number, &total)) {
      return bad_duration(text, "is too long");
    }
  }
  return total;
}

std::string format_duration(std::int64_t duration_ns) {
  if (duration_ns == 0) return "0s";
  std::string text;
  if (duration_ns < 0) text = "-";
  // Unsigned, so that the smallest negative number has a magnitude.
  std::uint64_t rest = duration_ns < 0 ? 0 - static_cast<std::uint64_t>(duration_ns)
                                       : static_cast<std::uint64_t>(duration_ns);
  for (const std::string_view name : {"d", "h", "m", "s", "ms", "us", "ns"}) {
    for (const Unit& unit : kUnits) {
      if (unit.name != name) continue;
      const auto size = static_cast<std::uint64_t>(unit.ns);
      if (rest >= size) text.append(std::to_string(rest / size)).append(name);
      rest %= size;
    }
  }
  return text;
}

Result<DateTime> parse_date_time(std::string_view text) {
  std::string_view rest = text;
  std::int64_t year = 0, month = 0, day = 0;
  if (!take_fixed(rest, 4, year) || !take_character(rest, '-') || !take_fixed(rest, 2, month) ||
      !take_character(rest, '-') || !take_fixed(rest, 2, day)) {
    return bad_time(text, "is not RFC 3339, like 2026-11-20T14:00:00Z");
  }
  if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) {
    return bad_time(text, "has a date that no calendar shows");
  }
  ClockTime clock;
  if (!rest.empty()) {
    if (rest.front() != 'T' && rest.front() != 't' && rest.front() != ' ') {
      return bad_time(text, "is not RFC 3339, like 2026-11-20T14:00:00Z");
    }
    EC_TRY(take_clock_time(text, rest.substr(1), clock));
  }
  DateTime time;
  time.seconds = days_from_date(year, month, day) * 86'400 + clock.hour * 3'600 +
                 clock.minute * 60 + clock.second;
  time.nanoseconds = clock.nanoseconds;
  time.offset_seconds = clock.offset_seconds;
  time.has_clock = !rest.empty();
  time.is_leap_second = clock.second == 60;
  return time;
}

Result<std::int64_t> instant_of(const DateTime& time, std::string_view text, const TimeZone* zone) {
  if (!time.offset_seconds && zone == nullptr && time.has_clock)
    return bad_time(text, "has no offset; end it in Z for UTC, or in one like +01:00");
  const std::int64_t seconds = time.offset_seconds || zone == nullptr
                                   ? time.seconds - time.offset_seconds.value_or(0)
                                   : zone->to_utc(time.seconds);
  // Leap seconds end a UTC day: the folded second is then the first of the next one.
  if (time.is_leap_second && seconds % 86'400 != 0) {
    return bad_time(text, "has a second 60 that is not 23:59:60 UTC");
  }
  std::int64_t time_ns = 0;
  if (!combine(seconds, time.nanoseconds, time_ns)) return bad_time(text, kOutOfRange);
  return time_ns;
}

Result<std::int64_t> parse_rfc3339_ns(std::string_view text, const TimeZone* zone) {
  EC_ASSIGN_OR_RETURN(const DateTime time, parse_date_time(text));
  return instant_of(time, text, zone);
}

Result<std::int64_t> parse_absolute_time_ns(std::string_view text, const TimeZone* zone) {
  if (text.empty()) return bad_time(text, "is empty");
  if (text.front() == '@') return parse_unix_ns(text);
  if (is_whole_number(text)) {
    // A year, or a distance that lacks its unit, would be a moment of 1970, and a range from it on
    // nearly everything.
    if (text.front() == '-' && text.size() <= kShortNumberMax)
      return bad_time(text, "lacks a unit; write it like -15m, or @-0.000000015");
    if (text.size() == 4 && text >= "1970" && text <= "2262")
      return bad_time(text, "is a year alone; write it like 2026-01-01, or @0.000002026");
    std::int64_t time_ns = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), time_ns);
    if (error != std::errc{}) return bad_time(text, kOutOfRange);
    return time_ns;
  }
  if (!is_digit(text.front()))
    return bad_time(text, "is none of: 2026-11-20T14:00:00Z, 2026-11-20, @1763647200, nanoseconds");
  return parse_rfc3339_ns(text, zone);
}

std::string_view unit_meant(std::int64_t time_ns) {
  struct Count {
    std::string_view name;
    std::int64_t scale;
  };
  // From November 2004 to October 2096.
  constexpr std::int64_t kFirst = 1'100'000'000, kEnd = 4'000'000'000;
  for (const Count& count :
       {Count{"unix", 1}, Count{"unix_ms", 1'000}, Count{"unix_us", 1'000'000}}) {
    if (time_ns >= kFirst * count.scale && time_ns < kEnd * count.scale) return count.name;
  }
  return {};
}

namespace {

// A whole number that is hardly a count of nanoseconds: they would be a moment of 1970.
Status check_count(std::string_view text, std::int64_t time_ns) {
  constexpr std::size_t kDateBytes = 8;
  if (text.size() == kDateBytes) {
    const std::string date = std::string(text.substr(0, 4)) + "-" + std::string(text.substr(4, 2)) +
                             "-" + std::string(text.substr(6));
    if (text >= "19700101" && parse_rfc3339_ns(date).ok())
      return bad_time(text, "is a date without its dashes; write it like " + date);
  }
  const std::string_view unit = unit_meant(time_ns);
  if (unit.empty()) return ok();
  const std::size_t places = unit == "unix" ? 0 : unit == "unix_ms" ? 3 : 6;
  std::string seconds(text);
  if (places > 0) seconds.insert(seconds.size() - places, ".");
  return bad_time(text,
                  "would be a moment of 1970: it counts nanoseconds; seconds are @" + seconds);
}

}  // namespace

Result<std::int64_t> parse_time_ns(std::string_view text, std::int64_t now_ns,
                                   const TimeZone* zone) {
  if (text.empty()) return bad_time(text, "is empty");
  if (text.front() == '@') return parse_absolute_time_ns(text, zone);
  if (is_whole_number(text)) {
    EC_ASSIGN_OR_RETURN(const std::int64_t time_ns, parse_absolute_time_ns(text, zone));
    EC_TRY(check_count(text, time_ns));
    return time_ns;
  }
  if (is_signed(text)) return moved(text, text, now_ns);
  if (looks_like_duration(text)) return moved(text, "-" + std::string(text), now_ns);
  for (const std::string_view word : {kNow, kToday, kYesterday}) {
    if (!text.starts_with(word)) continue;
    const std::string_view distance = text.substr(word.size());
    if (!distance.empty() && !is_signed(distance)) continue;
    std::int64_t time_ns = now_ns;
    if (word != kNow) {
      EC_ASSIGN_OR_RETURN(time_ns, day_ns(text, now_ns, word == kYesterday ? 1 : 0, zone));
    }
    return distance.empty() ? Result<std::int64_t>(time_ns) : moved(text, distance, time_ns);
  }
  if (!is_digit(text.front())) {
    return bad_time(text,
                    "is none of: 2026-11-20T14:00:00Z, 2026-11-20, @1763647200, nanoseconds, now, "
                    "today, yesterday, -15m, now-15m, +15m");
  }
  return parse_rfc3339_ns(text, zone);
}

bool depends_on_zone(std::string_view text) {
  if (text.starts_with(kToday) || text.starts_with(kYesterday)) return true;
  const Result<DateTime> time = parse_date_time(text);
  return time.ok() && !time->offset_seconds;
}

Result<std::uint64_t> parse_size_bytes(std::string_view text) {
  struct SizeUnit {
    std::string_view name;
    std::int64_t bytes;
  };
  constexpr std::array kSizeUnits = {
      SizeUnit{"", 1},
      SizeUnit{"B", 1},
      SizeUnit{"kB", 1'000},
      SizeUnit{"KB", 1'000},
      SizeUnit{"MB", 1'000'000},
      SizeUnit{"GB", 1'000'000'000},
      SizeUnit{"TB", 1'000'000'000'000},
      SizeUnit{"KiB", std::int64_t{1} << 10},
      SizeUnit{"MiB", std::int64_t{1} << 20},
      SizeUnit{"GiB", std::int64_t{1} << 30},
      SizeUnit{"TiB", std::int64_t{1} << 40},
  };
  const auto bad = [&](std::string_view why) {
    return invalid_argument("size " + quoted(text) + " " + std::string(why) +
                            "; write it like 4096, 64MiB, 1GB");
  };
  std::string_view rest = text;
  std::int64_t number = 0;
  if (rest.empty() || !is_digit(rest.front())) return bad("is not a whole number with a unit");
  if (!take_number(rest, number)) return bad("is too large");
  if (rest.size() > 1) take_character(rest, ' ');
  for (const SizeUnit& unit : kSizeUnits) {
    if (unit.name != rest) continue;
    if (number > kMax / unit.bytes) return bad("is too large");
    return static_cast<std::uint64_t>(number * unit.bytes);
  }
  return bad("has an unknown unit");
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::uint64_t scale = 1;
  while (unit + 1 < kNames.size() && bytes / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  std::uint64_t whole = bytes / scale;
  // Rounded to the nearest tenth; a carry may reach the whole part.
  std::uint64_t tenths = (bytes % scale * 10 + scale / 2) / scale;
  if (tenths == 10) {
    ++whole;
    tenths = 0;
  }
  std::string text = std::to_string(whole);
  if (tenths != 0) text += "." + std::to_string(tenths);
  return text.append(" ").append(kNames[unit]);
}

}  // namespace edgecase::wire
