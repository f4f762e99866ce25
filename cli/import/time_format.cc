#include "import/csv_decoder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <optional>
#include <string>

#include "wire/decimal.h"
#include "wire/names.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct Unit {
  std::string_view name;
  int shift;  // a power of ten, to nanoseconds
};
constexpr std::array<Unit, 4> kUnits = {
    {{"unix", 9}, {"unix_ms", 6}, {"unix_us", 3}, {"unix_ns", 0}}};

constexpr std::string_view kLetters = "YymdjHIpMSfbBzs%";
constexpr std::array<std::string_view, 12> kMonths = {
    "january", "february", "march",     "april",   "may",      "june",
    "july",    "august",   "september", "october", "november", "december"};

std::int64_t power_of_ten(int exponent) {
  std::int64_t value = 1;
  while (exponent-- > 0) value *= 10;
  return value;
}

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

// What a pattern has found in a text.
struct Parts {
  std::int64_t year = 1970, month = 1, day = 1;
  std::optional<std::int64_t> day_of_year;
  std::int64_t hour = 0, minute = 0, second = 0, nanoseconds = 0;
  std::optional<bool> is_afternoon;
  std::optional<std::int64_t> offset_seconds;
  std::optional<std::int64_t> seconds_since_1970;
};

// Reads a text along a pattern.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool take(std::string_view pattern) {
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (is_space(pattern[i])) {
        skip_spaces();
      } else if (pattern[i] == '%') {
        if (!take_letter(pattern[++i])) return false;
      } else if (!take_character(pattern[i])) {
        return false;
      }
    }
    skip_spaces();
    return rest_.empty();
  }

  const Parts& parts() const { return parts_; }

 private:
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }

  bool take_character(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A whole number of up to `digits_max` digits, between two bounds.
  bool take_number(std::size_t digits_max, std::int64_t least, std::int64_t most,
                   std::int64_t& value) {
    std::size_t digits = 0;
    value = 0;
    while (digits < std::min(digits_max, rest_.size()) && wire::is_digit(rest_[digits])) {
      value = value * 10 + (rest_[digits++] - '0');
    }
    rest_.remove_prefix(digits);
    return digits > 0 && value >= least && value <= most;
  }

  bool take_letter(char letter) {
    switch (letter) {
      case 'Y': return take_number(4, 1, 9999, parts_.year);
      case 'y': {
        const bool taken = take_number(2, 0, 99, parts_.year);
        parts_.year += parts_.year < 69 ? 2000 : 1900;  // as POSIX has it
        return taken;
      }
      case 'm': return take_number(2, 1, 12, parts_.month);
      case 'd': skip_spaces(); return take_number(2, 1, 31, parts_.day);
      case 'j': return take_number(3, 1, 366, parts_.day_of_year.emplace());
      case 'H': skip_spaces(); return take_number(2, 0, 24, parts_.hour);
      case 'I': skip_spaces(); return take_number(2, 1, 12, parts_.hour);
      case 'M': return take_number(2, 0, 59, parts_.minute);
      case 'S': return take_number(2, 0, 60, parts_.second);
      case 'f': return take_fraction();
      case 'p': return take_half();
      case 'b':
      case 'B': return take_month();
      case 'z': return take_offset();
      case 's': return take_number(18, 0, INT64_MAX, parts_.seconds_since_1970.emplace());
      default: return take_character(letter);
    }
  }

  bool take_fraction() {
    std::int64_t digits = 0;
    for (; !rest_.empty() && wire::is_digit(rest_.front()); rest_.remove_prefix(1), ++digits) {
      if (digits < 9) parts_.nanoseconds = parts_.nanoseconds * 10 + (rest_.front() - '0');
    }
    parts_.nanoseconds *= power_of_ten(static_cast<int>(std::max<std::int64_t>(9 - digits, 0)));
    return digits > 0;
  }

  bool take_word(std::string_view word) {
    const auto equal = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    };
    if (rest_.size() < word.size() || !std::equal(word.begin(), word.end(), rest_.begin(),
                                                  [&](char b, char a) { return equal(a, b); })) {
      return false;
    }
    rest_.remove_prefix(word.size());
    return true;
  }

  bool take_half() {
    if (take_word("am") || take_word("a.m."))
      parts_.is_afternoon = false;
    else if (take_word("pm") || take_word("p.m."))
      parts_.is_afternoon = true;
    return parts_.is_afternoon.has_value();
  }

  bool take_month() {
    for (std::size_t i = 0; i < kMonths.size(); ++i) {
      if (!take_word(kMonths[i]) && !take_word(kMonths[i].substr(0, 3))) continue;
      parts_.month = static_cast<std::int64_t>(i) + 1;
      return true;
    }
    return false;
  }

  // "Z", "+0130", "+01:30", "+01".
  bool take_offset() {
    if (take_word("z") || take_word("utc") || take_word("gmt")) {
      parts_.offset_seconds = 0;
      return true;
    }
    const bool is_west = rest_.starts_with('-');
    if (!take_character('+') && !take_character('-')) return false;
    std::int64_t hours = 0, minutes = 0;
    if (!take_number(2, 0, 23, hours)) return false;
    if (rest_.starts_with(':')) rest_.remove_prefix(1);
    if (!rest_.empty() && wire::is_digit(rest_.front()) && !take_number(2, 0, 59, minutes)) {
      return false;
    }
    parts_.offset_seconds = (hours * 60 + minutes) * 60 * (is_west ? -1 : 1);
    return true;
  }

  std::string_view rest_;
  Parts parts_;
};

// Since 1970 as if the clock showed UTC; nullopt: there is no such day or time.
std::optional<std::int64_t> seconds_of(const Parts& parts) {
  using std::chrono::day, std::chrono::month, std::chrono::year;
  std::int64_t hour = parts.hour;
  if (parts.is_afternoon) {
    if (hour < 1 || hour > 12) return std::nullopt;
    hour = hour % 12 + (*parts.is_afternoon ? 12 : 0);
  }
  // Midnight as the end of a day.
  if (hour == 24 && (parts.minute != 0 || parts.second != 0)) return std::nullopt;
  const year in(static_cast<int>(parts.year));
  std::chrono::year_month_day date(in, month(static_cast<unsigned>(parts.month)),
                                   day(static_cast<unsigned>(parts.day)));
  if (parts.day_of_year) {
    if (*parts.day_of_year == 366 && !in.is_leap()) return std::nullopt;
    date = std::chrono::sys_days(in / 1 / 1) + std::chrono::days(*parts.day_of_year - 1);
  }
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + parts.minute) * 60 + parts.second;
}

std::string without_shorthand(std::string_view text) {
  std::string pattern;
  for (std::size_t i = 0; i < text.size(); ++i) {
    pattern += text[i];
    if (text[i] != '%' || i + 1 == text.size()) continue;
    const char letter = text[++i];
    pattern.pop_back();
    switch (letter) {
      case 'T': pattern += "%H:%M:%S"; break;
      case 'F': pattern += "%Y-%m-%d"; break;
      case 'D': pattern += "%m/%d/%y"; break;
      case 'R': pattern += "%H:%M"; break;
      default: pattern.append({'%', letter}); break;
    }
  }
  return pattern;
}

bool says(std::string_view pattern, std::string_view letters) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    if (letters.find(pattern[++i]) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Result<TimeFormat> TimeFormat::parse(std::string_view text) {
  TimeFormat format;
  for (const Unit& unit : kUnits) {
    if (text == unit.name) {
      format.unit_ns_ = power_of_ten(unit.shift);
      return format;
    }
  }
  format.pattern_ = without_shorthand(text);
  const std::string& pattern = format.pattern_;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    if (++i == pattern.size() || kLetters.find(pattern[i]) == std::string_view::npos) {
      return invalid_argument("time format \"" + std::string(text) + "\": " +
                              (i == pattern.size() ? "% ends it"
                                                   : "%" + std::string(1, pattern[i]) +
                                                         " is none of %Y %y %m %d %j %H %I %p %M "
                                                         "%S %f %b %B %z %s %T %F %D %R"));
    }
  }
  const bool has_day = says(pattern, "Yy") && (says(pattern, "j") || says(pattern, "mbB"));
  if (!says(pattern, "s") && !has_day) {
    return invalid_argument("time format \"" + std::string(text) +
                            "\" says no day: unix, unix_ms, unix_us, unix_ns, or letters such as "
                            "\"%d.%m.%Y %H:%M:%S\"");
  }
  return format;
}

Result<std::int64_t> TimeFormat::read(std::string_view given, const wire::TimeZone* zone) const {
  const std::string_view text = wire::trimmed_text(given);
  const auto refused = [&](const std::string& why) {
    return invalid_argument("time \"" + std::string(text.substr(0, 64)) + "\" " + why);
  };
  if (unit_ns_ != 0) {
    const auto decimal = wire::read_exact_decimal(text);
    if (!decimal) return refused("is no number");
    int shift = 0;
    for (std::int64_t unit = unit_ns_; unit > 1; unit /= 10) ++shift;
    const auto time_ns = wire::scaled(*decimal, shift);
    if (!time_ns) return refused("is beyond what 64-bit nanoseconds hold");
    return *time_ns;
  }
  Reader reader(text);
  if (!reader.take(pattern_)) return refused("is not written as " + pattern_);
  const Parts& parts = reader.parts();
  wire::DateTime time;
  time.nanoseconds = parts.nanoseconds;
  time.has_clock = true;
  if (parts.seconds_since_1970) {
    time.seconds = *parts.seconds_since_1970;
    time.offset_seconds = 0;
  } else {
    const auto seconds = seconds_of(parts);
    if (!seconds) return refused("is no day or time that there is");
    time.seconds = *seconds;
    time.offset_seconds = parts.offset_seconds;
  }
  return wire::instant_of(time, text, zone);
}

}  // namespace edgecase::cli
