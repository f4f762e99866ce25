#include "wire/time_text.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "wire/decimal.h"

namespace edgecase::wire {
namespace {

constexpr std::size_t kHeaderBytes = 44;
constexpr std::size_t kZoneNameMaxBytes = 64;
constexpr std::int64_t kDaySeconds = 86'400;
constexpr std::int64_t kOffsetMaxSeconds = 26 * 3'600;  // RFC 8536: between -25 and +26 hours

std::int64_t big_endian(std::string_view bytes) {
  // The sign is in the first byte.
  std::uint64_t value = static_cast<signed char>(bytes[0]) < 0 ? ~std::uint64_t{0} : 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(value);
}

bool take_count(std::string_view& text, std::int64_t& number) {
  std::size_t digits = 0;
  number = 0;
  while (digits < text.size() && digits < 4 && is_digit(text[digits])) {
    number = number * 10 + (text[digits++] - '0');
  }
  text.remove_prefix(digits);
  return digits > 0;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// [+-]hh[:mm[:ss]]
bool take_clock(std::string_view& text, std::int64_t& seconds) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::int64_t hours = 0, minutes = 0, rest = 0;
  if (!take_count(text, hours) || hours > 167) return false;
  if (take(text, ':') && (!take_count(text, minutes) || minutes > 59)) return false;
  if (take(text, ':') && (!take_count(text, rest) || rest > 59)) return false;
  seconds = hours * 3'600 + minutes * 60 + rest;
  if (negative) seconds = -seconds;
  return true;
}

// "CET" or "<+03>"
bool take_abbreviation(std::string_view& text) {
  std::size_t size = 0;
  if (text.starts_with('<')) {
    size = text.find('>');
    if (size == std::string_view::npos) return false;
    text.remove_prefix(size + 1);
    return size > 1;
  }
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  while (size < text.size() && is_letter(text[size])) ++size;
  text.remove_prefix(size);
  return size >= 3;
}

// "+02:00", "-0330", "+02"
bool parse_fixed_offset(std::string_view text, std::int64_t& seconds) {
  const bool negative = text.starts_with('-');
  if (!negative && !text.starts_with('+')) return false;
  std::string digits(text.substr(1));
  if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
  if (digits.size() == 2) digits += "00";
  if (digits.size() != 4 || !std::all_of(digits.begin(), digits.end(), is_digit)) return false;
  const int hours = (digits[0] - '0') * 10 + digits[1] - '0';
  const int minutes = (digits[2] - '0') * 10 + digits[3] - '0';
  if (hours > 24 || minutes > 59) return false;
  seconds = hours * 3'600 + minutes * 60;
  if (negative) seconds = -seconds;
  return true;
}

bool is_zone_name(std::string_view name) {
  constexpr std::string_view kTaken =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
  return !name.empty() && name.size() <= kZoneNameMaxBytes && name.front() != '/' &&
         name.back() != '/' && name.find_first_not_of(kTaken) == std::string_view::npos &&
         name.find("//") == std::string_view::npos;
}

bool is_leap(std::int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

// Days from 1970-01-01 to the first of January.
std::int64_t days_to_year(std::int64_t year) {
  const std::int64_t before = year - 1;
  const auto floor_div = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  return (year - 1970) * 365 + floor_div(before, 4) - floor_div(before, 100) +
         floor_div(before, 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
}

std::int64_t year_of(std::int64_t seconds) {
  std::int64_t year = 1970 + seconds / (365 * kDaySeconds + kDaySeconds / 4);
  while (days_to_year(year) * kDaySeconds > seconds) --year;
  while (days_to_year(year + 1) * kDaySeconds <= seconds) ++year;
  return year;
}

}  // namespace

Result<TimeZone> TimeZone::find(std::string_view name, const std::string& directory) {
  TimeZone zone;
  if (name == "UTC" || name == "Z") return zone;
  if (parse_fixed_offset(name, zone.first_offset_)) return zone;
  const std::string quoted = "\"" + std::string(name.substr(0, kZoneNameMaxBytes)) + "\"";
  if (!is_zone_name(name)) {
    return invalid_argument(quoted + " is no time zone; write UTC, +02:00 or Europe/Berlin");
  }
  return read(directory + "/" + std::string(name), quoted);
}

Result<TimeZone> TimeZone::read(const std::string& path, const std::string& name) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (!file) {
    std::string why = name + " is no time zone of this machine: " + path + ": ";
    why += std::strerror(errno);
    if (errno == ENOENT) why += "; install tzdata where that directory is missing";
    return invalid_argument(why);
  }
  std::string bytes(kZoneFileMaxBytes + 1, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  if (std::ferror(file.get()) != 0 || bytes.size() > kZoneFileMaxBytes) {
    return invalid_argument(path + ": is no file of a time zone");
  }
  Result<TimeZone> parsed = parse(bytes);
  if (!parsed.ok()) return invalid_argument(path + ": " + parsed.status().message());
  return parsed;
}

Result<TimeZone> TimeZone::local(const char* tz, const std::string& path) {
  std::string_view name = tz == nullptr ? "" : tz;
  if (name.starts_with(':')) name.remove_prefix(1);
  if (name.starts_with('/')) return read(std::string(name), "TZ");
  if (tz != nullptr && name.empty()) return TimeZone();  // as the library of C takes it
  // A machine without the file counts in UTC.
  if (name.empty()) return access(path.c_str(), F_OK) == 0 ? read(path, "this one") : TimeZone();
  TimeZone zone;
  if (zone.parse_rule(name).ok()) return zone;
  return find(name);
}

Result<TimeZone> TimeZone::parse(std::string_view file) {
  TimeZone zone;
  std::size_t used = 0;
  EC_TRY(zone.parse_block(file, 4, used));
  if (file[4] == '\0') return zone;
  // Version 2 and later: the same again in 64 bits, and a rule for the time behind it.
  file.remove_prefix(used);
  zone = TimeZone();
  EC_TRY(zone.parse_block(file, 8, used));
  file.remove_prefix(used);
  const std::size_t end = file.find('\n', 1);
  if (!file.starts_with('\n') || end == std::string_view::npos) {
    return invalid_argument("is cut short");
  }
  if (end > 1) EC_TRY(zone.parse_rule(file.substr(1, end - 1)));
  return zone;
}

Status TimeZone::parse_block(std::string_view block, std::size_t time_bytes, std::size_t& used) {
  const Status damaged = invalid_argument("is no file of a time zone");
  if (block.size() < kHeaderBytes || !block.starts_with("TZif")) return damaged;
  const auto count = [block](std::size_t index) {
    return static_cast<std::size_t>(
        static_cast<std::uint32_t>(big_endian(block.substr(20 + 4 * index, 4))));
  };
  const std::size_t is_utc = count(0), is_standard = count(1), leaps = count(2), times = count(3),
                    types = count(4), characters = count(5);
  const std::size_t most = kZoneFileMaxBytes;
  if (std::max({is_utc, is_standard, leaps, times, types, characters}) > most || types == 0) {
    return damaged;
  }
  const std::size_t indexes_at = kHeaderBytes + times * time_bytes;
  const std::size_t types_at = indexes_at + times;
  used = types_at + types * 6 + characters + leaps * (time_bytes + 4) + is_standard + is_utc;
  if (used > block.size()) return damaged;
  const auto offset_of = [&](std::size_t type) {
    return big_endian(block.substr(types_at + type * 6, 4));
  };
  for (std::size_t type = 0; type < types; ++type) {
    if (std::abs(offset_of(type)) > kOffsetMaxSeconds) return damaged;
  }
  first_offset_ = offset_of(0);
  for (std::size_t i = 0; i < times; ++i) {
    const auto type = static_cast<unsigned char>(block[indexes_at + i]);
    if (type >= types) return damaged;
    Change change;
    change.at = big_endian(block.substr(kHeaderBytes + i * time_bytes, time_bytes));
    change.offset = offset_of(type);
    if (!changes_.empty() && change.at <= changes_.back().at) return damaged;
    changes_.push_back(change);
  }
  return ok();
}

// A TZ string of POSIX: "CET-1CEST,M3.5.0,M10.5.0/3". West is positive there.
Status TimeZone::parse_rule(std::string_view text) {
  const Status unknown =
      invalid_argument("holds a rule that is none: " + std::string(text.substr(0, 64)));
  Rule rule;
  if (!take_abbreviation(text) || !take_clock(text, rule.offset)) return unknown;
  rule.offset = -rule.offset;
  if (!text.empty()) {
    rule.has_summer = true;
    if (!take_abbreviation(text)) return unknown;
    rule.summer_offset = rule.offset + 3'600;
    if (!text.empty() && text.front() != ',') {
      if (!take_clock(text, rule.summer_offset)) return unknown;
      rule.summer_offset = -rule.summer_offset;
    }
    if (!take(text, ',') || !take_year_day(text, rule.summer_begins)) return unknown;
    if (!take(text, ',') || !take_year_day(text, rule.summer_ends)) return unknown;
  }
  if (!text.empty() || std::abs(rule.offset) > kOffsetMaxSeconds ||
      std::abs(rule.summer_offset) > kOffsetMaxSeconds) {
    return unknown;
  }
  rule_ = rule;
  has_rule_ = true;
  return ok();
}

bool TimeZone::take_year_day(std::string_view& text, YearDay& day) {
  if (take(text, 'M')) {
    day.kind = YearDay::Kind::Month;
    if (!take_count(text, day.month) || !take(text, '.') || !take_count(text, day.week) ||
        !take(text, '.') || !take_count(text, day.weekday)) {
      return false;
    }
    if (day.month < 1 || day.month > 12 || day.week < 1 || day.week > 5 || day.weekday > 6) {
      return false;
    }
  } else {
    day.kind = take(text, 'J') ? YearDay::Kind::Julian : YearDay::Kind::Zero;
    if (!take_count(text, day.day) || day.day > 365) return false;
    if (day.kind == YearDay::Kind::Julian && day.day == 0) return false;
  }
  return !take(text, '/') || take_clock(text, day.seconds);
}

// Seconds of local time in that year, as if it were UTC.
std::int64_t TimeZone::seconds_of(const YearDay& day, std::int64_t year) {
  std::int64_t days = days_to_year(year);
  switch (day.kind) {
    case YearDay::Kind::Zero: days += day.day; break;
    case YearDay::Kind::Julian: days += day.day - (is_leap(year) && day.day >= 60 ? 0 : 1); break;
    case YearDay::Kind::Month: {
      static constexpr std::int64_t kMonthDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
      const auto month_days = [year](std::int64_t month) {
        return kMonthDays[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
      };
      for (std::int64_t month = 1; month < day.month; ++month) days += month_days(month);
      // 1970-01-01 was a Thursday.
      const std::int64_t first_weekday = ((days + 4) % 7 + 7) % 7;
      std::int64_t of_month = (day.weekday - first_weekday + 7) % 7 + 7 * (day.week - 1);
      while (of_month >= month_days(day.month)) of_month -= 7;
      days += of_month;
      break;
    }
  }
  return days * kDaySeconds + day.seconds;
}

std::int64_t TimeZone::offset_by_rule(std::int64_t utc_seconds) const {
  if (!rule_.has_summer) return rule_.offset;
  const std::int64_t year = year_of(utc_seconds + rule_.offset);
  const std::int64_t begins = seconds_of(rule_.summer_begins, year) - rule_.offset;
  const std::int64_t ends = seconds_of(rule_.summer_ends, year) - rule_.summer_offset;
  const bool is_summer = begins < ends ? utc_seconds >= begins && utc_seconds < ends
                                       : utc_seconds >= begins || utc_seconds < ends;
  return is_summer ? rule_.summer_offset : rule_.offset;
}

std::int64_t TimeZone::offset_at(std::int64_t utc_seconds) const {
  const auto behind = std::upper_bound(
      changes_.begin(), changes_.end(), utc_seconds,
      [](std::int64_t seconds, const Change& change) { return seconds < change.at; });
  if (behind == changes_.end() && has_rule_) return offset_by_rule(utc_seconds);
  return behind == changes_.begin() ? first_offset_ : (behind - 1)->offset;
}

std::int64_t TimeZone::to_utc(std::int64_t local_seconds) const {
  // No zone changes twice within a day or moves by more.
  const std::int64_t before = offset_at(local_seconds - kOffsetMaxSeconds);
  const std::int64_t after = offset_at(local_seconds + kOffsetMaxSeconds);
  // The larger offset gives the earlier instant.
  for (const std::int64_t offset : {std::max(before, after), std::min(before, after)}) {
    if (offset_at(local_seconds - offset) == offset) return local_seconds - offset;
  }
  return local_seconds - before;
}

}  // namespace edgecase::wire
