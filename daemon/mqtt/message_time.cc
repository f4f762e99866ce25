#include "mqtt/message_time.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace edgecase::mqtt {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

struct Decimal {
  bool negative = false;
  std::string digits;  // without leading zeros
  int exponent = 0;    // value = digits * 10^exponent
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  constexpr std::size_t kDigitsMax = 64;
  Decimal result;
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) result.negative = text[i++] == '-';
  bool any = false;
  bool fraction = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') break;
    any = true;
    if (result.digits.empty() && text[i] == '0') {
      result.exponent -= fraction ? 1 : 0;
      continue;
    }
    if (result.digits.size() < kDigitsMax) {
      result.digits += text[i];
      result.exponent -= fraction ? 1 : 0;
    } else if (!fraction) {
      return std::nullopt;
    }
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int exponent = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (error != std::errc() || exponent > 400 || exponent < -400) return std::nullopt;
    result.exponent += exponent;
    i = static_cast<std::size_t>(end - text.data());
  }
  if (i != text.size()) return std::nullopt;
  return result;
}

// digits * 10^(exponent + shift), cut to a whole number.
std::optional<std::int64_t> scale(const Decimal& decimal, int shift) {
  if (decimal.digits.empty()) return 0;
  std::string digits = decimal.digits;
  const int exponent = decimal.exponent + shift;
  if (exponent < 0) {
    const auto cut = static_cast<std::size_t>(-exponent);
    if (cut >= digits.size()) return 0;
    digits.resize(digits.size() - cut);
  } else {
    if (digits.size() + static_cast<std::size_t>(exponent) > 19) return std::nullopt;
    digits.append(static_cast<std::size_t>(exponent), '0');
  }
  if (decimal.negative) digits.insert(digits.begin(), '-');
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

int shift_of(TimeFormat format, const Decimal& decimal) {
  switch (format) {
    case TimeFormat::Unix: return 9;
    case TimeFormat::UnixMs: return 6;
    case TimeFormat::UnixUs: return 3;
    case TimeFormat::UnixNs: return 0;
    default: break;
  }
  const int whole_digits = static_cast<int>(decimal.digits.size()) + decimal.exponent;
  if (whole_digits <= 11) return 9;
  if (whole_digits <= 14) return 6;
  return whole_digits <= 17 ? 3 : 0;
}

// Days since 1970-01-01 of a day of the Gregorian calendar, by counting years from March.
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  if (month <= 2) --year;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t month_from_march = (month + 9) % 12;
  const std::int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

bool is_leap(int year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

// Reads what it is asked for from the front; `failed` once something was not there.
struct Cursor {
  std::string_view rest;
  bool failed = false;

  int number(std::size_t digits) {
    int value = 0;
    if (rest.size() < digits) failed = true;
    for (std::size_t i = 0; i < digits && !failed; ++i) {
      if (rest[i] < '0' || rest[i] > '9') failed = true;
      value = value * 10 + (rest[i] - '0');
    }
    if (!failed) rest.remove_prefix(digits);
    return value;
  }
  bool take(std::string_view any_of) {
    if (failed || rest.empty() || any_of.find(rest[0]) == any_of.npos) return false;
    rest.remove_prefix(1);
    return true;
  }
  void expect(std::string_view any_of) { failed = !take(any_of) || failed; }
};

struct CivilTime {
  std::int64_t seconds = 0;  // since 1970, as if it were UTC
  std::int64_t nanoseconds = 0;
  std::optional<int> offset_seconds;
};

std::optional<CivilTime> parse_civil(std::string_view text) {
  Cursor in{text};
  const int year = in.number(4);
  in.expect("-");
  const int month = in.number(2);
  in.expect("-");
  const int day = in.number(2);
  in.expect("Tt ");
  const int hour = in.number(2);
  in.expect(":");
  const int minute = in.number(2);
  in.expect(":");
  const int second = in.number(2);
  if (in.failed || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 60) return {};
  constexpr std::array kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int last = month == 2 && is_leap(year) ? 29 : kDays[static_cast<std::size_t>(month - 1)];
  if (day < 1 || day > last) return {};
  CivilTime time;
  time.seconds = days_from_civil(year, month, day) * 86'400 + hour * 3'600 + minute * 60 + second;
  if (in.take(".,")) {
    std::int64_t unit = kNsPerSecond / 10;
    bool any = false;
    while (!in.rest.empty() && in.rest[0] >= '0' && in.rest[0] <= '9') {
      time.nanoseconds += (in.rest[0] - '0') * unit;
      unit /= 10;
      in.rest.remove_prefix(1);
      any = true;
    }
    if (!any) return {};
  }
  if (in.rest.empty()) return time;
  if (in.take("Zz")) {
    time.offset_seconds = 0;
  } else {
    const bool west = in.rest[0] == '-';
    in.expect("+-");
    int offset = in.number(2) * 3'600;
    if (!in.rest.empty()) {
      in.take(":");
      offset += in.number(2) * 60;
    }
    if (in.failed || offset > 24 * 3'600) return {};
    time.offset_seconds = west ? -offset : offset;
  }
  if (!in.rest.empty()) return {};
  return time;
}

Status bad_time(std::string_view text, std::string_view what) {
  constexpr std::size_t kShownBytes = 64;
  return invalid_argument("time \"" + std::string(text.substr(0, kShownBytes)) + "\" " +
                          std::string(what));
}

Result<std::int64_t> parse_rfc3339(std::string_view text, const wire::TimeZone* zone) {
  const auto civil = parse_civil(text);
  if (!civil) return bad_time(text, "is not RFC 3339");
  if (!civil->offset_seconds && zone == nullptr) {
    return bad_time(text, "has no offset from UTC; time-zone says whose clock it is");
  }
  const std::int64_t seconds = civil->offset_seconds ? civil->seconds - *civil->offset_seconds
                                                     : zone->to_utc(civil->seconds);
  // Below zero the fraction still counts forward, so the limit is checked on the whole second.
  constexpr std::int64_t kSecondsMax = std::numeric_limits<std::int64_t>::max() / kNsPerSecond - 1;
  if (seconds > kSecondsMax || seconds < -kSecondsMax) return bad_time(text, "is out of range");
  return seconds * kNsPerSecond + civil->nanoseconds;
}

}  // namespace

Result<TimeFormat> parse_time_format(std::string_view name) {
  if (name == "auto" || name.empty()) return TimeFormat::Auto;
  if (name == "rfc3339") return TimeFormat::Rfc3339;
  if (name == "unix") return TimeFormat::Unix;
  if (name == "unix_ms") return TimeFormat::UnixMs;
  if (name == "unix_us") return TimeFormat::UnixUs;
  if (name == "unix_ns") return TimeFormat::UnixNs;
  return invalid_argument("time-format: \"" + std::string(name) +
                          "\": one of auto, rfc3339, unix, unix_ms, unix_us, unix_ns");
}

Result<std::int64_t> parse_message_time_ns(std::string_view text, TimeFormat format,
                                           const wire::TimeZone* zone) {
  if (format == TimeFormat::Rfc3339) return parse_rfc3339(text, zone);
  const auto decimal = parse_decimal(text);
  if (!decimal) {
    if (format == TimeFormat::Auto) return parse_rfc3339(text, zone);
    return bad_time(text, "is not a number");
  }
  const auto time_ns = scale(*decimal, shift_of(format, *decimal));
  if (!time_ns) return bad_time(text, "is out of range");
  return *time_ns;
}

bool says_last_heard(std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  const std::string_view name = slash == pointer.npos ? pointer : pointer.substr(slash + 1);
  return name == "last_seen" || name == "lastSeen" || name == "lastseen";
}

bool is_time_without_offset(std::string_view text) {
  const auto civil = parse_civil(text);
  return civil && !civil->offset_seconds;
}

}  // namespace edgecase::mqtt
