// Moments as people, programs and mail write them, put as times are taken (mended_line.h).
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mended_line.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

using UnitName = std::pair<std::string_view, std::string_view>;

std::string in_today(const std::string& clock) {
  std::string text = "today+" + std::to_string(std::stoi(clock.substr(0, 2))) + "h";
  if (const int minutes = std::stoi(clock.substr(3, 2)); minutes > 0)
    text += std::to_string(minutes) + "m";
  return text;
}

}  // namespace

bool is_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
         text.find_first_not_of("0123456789.,eE+-") == std::string_view::npos;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string duration_meant(std::string_view given) {
  constexpr std::size_t kGivenMax = 32;
  if (given.size() > kGivenMax) return {};
  // A large M alone may be a month.
  const std::size_t large = given.find('M');
  const bool has_rest = large != given.npos && large + 1 < given.size() && given[large + 1] != ' ';
  if (large != given.npos && !has_rest && given.find_first_of("hH") == given.npos) return {};
  std::string text = in_lower_case(given);
  std::erase(text, ' ');
  if (text.ends_with("ago")) text.resize(text.size() - 3);
  if (text.starts_with('-') || text.starts_with('+')) text.erase(0, 1);
  constexpr std::array kNames = {
      UnitName{"milliseconds", "ms"}, UnitName{"millis", "ms"}, UnitName{"seconds", "s"},
      UnitName{"second", "s"},        UnitName{"secs", "s"},    UnitName{"sec", "s"},
      UnitName{"minutes", "m"},       UnitName{"minute", "m"},  UnitName{"mins", "m"},
      UnitName{"min", "m"},           UnitName{"hours", "h"},   UnitName{"hour", "h"},
      UnitName{"hrs", "h"},           UnitName{"hr", "h"},      UnitName{"days", "d"},
      UnitName{"day", "d"},           UnitName{"weeks", "w"},   UnitName{"week", "w"},
      UnitName{"months", "mo"},       UnitName{"month", "mo"},  UnitName{"years", "y"},
      UnitName{"year", "y"},
  };
  const std::size_t unit = text.find_first_not_of("0123456789");
  if (unit == std::string::npos) return text.empty() ? "" : text + "s";
  for (const auto& [name, meant] : kNames) {
    if (text.substr(unit) == name) text.replace(unit, std::string::npos, meant);
  }
  if (text.substr(unit) == "mo" && unit > 0 && unit < 4)
    text = std::to_string(30 * std::stoi(text)) + "d";
  return wire::parse_duration_ns(text).ok() ? text : std::string();
}

std::string date_meant(std::string_view text) {
  const std::size_t first = text.find_first_of("./-");
  if (first == std::string_view::npos) return {};
  const std::size_t second = text.find(text[first], first + 1);
  if (second == std::string_view::npos) return {};
  std::string parts[3] = {std::string(text.substr(0, first)),
                          std::string(text.substr(first + 1, second - first - 1)),
                          std::string(text.substr(second + 1))};
  for (const std::string& part : parts) {
    if (!all_digits(part) || part.size() > 4) return {};
  }
  // Where slashes part them the month comes first or second: what can be both is nobody's guess.
  const auto number = [](const std::string& part) { return std::stoi(part); };
  if (parts[0].size() != 4) {
    if (text[first] == '/' && number(parts[0]) <= 12 && number(parts[1]) <= 12 &&
        parts[0] != parts[1])
      return {};
    if (number(parts[1]) > 12) std::swap(parts[0], parts[1]);
    std::swap(parts[0], parts[2]);
  }
  if (parts[0].size() == 2) parts[0] = "20" + parts[0];
  for (std::string& part : parts) {
    if (part.size() == 1) part.insert(0, "0");
  }
  const std::string date = parts[0] + "-" + parts[1] + "-" + parts[2];
  return wire::parse_rfc3339_ns(date).ok() ? date : std::string();
}

std::string clock_meant(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == 0 || colon > 2 || colon == std::string_view::npos) return {};
  const std::string clock = (colon == 1 ? "0" : "") + std::string(text);
  return wire::parse_rfc3339_ns("2026-01-01T" + clock + "Z").ok() ? clock : std::string();
}

namespace {

// A moment taken apart into words; what was not said is empty or 0.
struct SaidTime {
  std::string date;   // "2026-11-20", "today"
  std::string clock;  // "14:00", "14:00:00.5"
  std::string zone;   // "Z", "+01:00"
  int day = 0, month = 0;
  std::string year;
};

bool begins_name(std::string_view word, std::string_view name) {
  return word.size() >= 3 && name.starts_with(word);
}

// 1 for "jan", "january"; 0: no month.
int month_called(std::string_view word) {
  constexpr std::array<std::string_view, 12> kMonths = {
      "january", "february", "march",     "april",   "may",      "june",
      "july",    "august",   "september", "october", "november", "december"};
  if (word.ends_with('.')) word.remove_suffix(1);
  for (std::size_t i = 0; i < kMonths.size(); ++i) {
    if (begins_name(word, kMonths[i])) return static_cast<int>(i) + 1;
  }
  return 0;
}

bool is_weekday(std::string_view word) {
  constexpr std::array<std::string_view, 7> kDays = {"monday", "tuesday",  "wednesday", "thursday",
                                                     "friday", "saturday", "sunday"};
  return std::any_of(kDays.begin(), kDays.end(),
                     [word](std::string_view day) { return begins_name(word, day); });
}

// "14:30" of "2:30" in the afternoon; empty: no clock shows it.
std::string in_half_day(const std::string& clock, bool is_afternoon) {
  const int hour = clock.empty() ? 0 : std::stoi(clock.substr(0, 2));
  if (hour < 1 || hour > 12) return {};
  const int whole = hour % 12 + (is_afternoon ? 12 : 0);
  return (whole < 10 ? "0" : "") + std::to_string(whole) + clock.substr(2);
}

// "14:00", "140000", "2pm", "14:00:00Z", "14:00+0100", and "14" behind a date.
bool take_clock(std::string word, SaidTime& said) {
  if (!said.clock.empty()) return false;
  const bool is_afternoon = word.ends_with("pm");
  const bool has_half = is_afternoon || word.ends_with("am");
  if (has_half) word.resize(word.size() - 2);
  const std::size_t zone = word.find_first_of("z+-");
  if (zone != std::string::npos && zone > 0) {
    said.zone = word.substr(zone) == "z" ? "Z" : word.substr(zone);
    word.resize(zone);
  }
  if (all_digits(word)) {
    if (said.date.empty() && !has_half) return false;
    if (word.size() <= 2) {
      word += ":00";
    } else if (word.size() == 4 || word.size() == 6) {
      word.insert(2, ":");
      if (word.size() == 7) word.insert(5, ":");
    }
  }
  said.clock = clock_meant(word);
  if (has_half) said.clock = in_half_day(said.clock, is_afternoon);
  return !said.clock.empty();
}

bool take_date(const std::string& word, SaidTime& said) {
  if (!said.date.empty()) return false;
  std::string date = date_meant(word);
  if (date.empty() && wire::parse_rfc3339_ns(word).ok()) date = word;
  if (date.empty() && all_digits(word) && word.size() == 8)
    date = word.substr(0, 4) + "-" + word.substr(4, 2) + "-" + word.substr(6);
  if (date.empty() && word.size() == 7 && word[4] == '-') date = word + "-01";
  if (!wire::parse_rfc3339_ns(date).ok()) return false;
  said.date = date;
  return true;
}

// One word, in lower case. False: nobody knows what it says.
bool take_word(const std::string& word, SaidTime& said) {
  if (is_weekday(word)) return true;
  if (const int month = month_called(word); month > 0 && said.month == 0) {
    said.month = month;
    return true;
  }
  if (word == "utc" || word == "gmt" || word == "z") {
    said.zone = "Z";
    return said.date.empty() || !said.clock.empty();
  }
  if ((word == "am" || word == "pm") && !said.clock.empty()) {
    said.clock = in_half_day(said.clock, word == "pm");
    return !said.clock.empty();
  }
  if (word == "today" || word == "yesterday") {
    said.date = word;
    return true;
  }
  const bool is_offset = word.front() == '+' || word.front() == '-';
  if (is_offset && !said.clock.empty() && said.zone.empty()) {
    said.zone = word;
    return true;
  }
  if (all_digits(word) && said.date.empty()) {
    if (word.size() == 4 && said.year.empty() && (said.month > 0 || said.day > 0)) {
      said.year = word;
      return true;
    }
    if (word.size() <= 2 && said.day == 0) {
      said.day = std::stoi(word);
      return true;
    }
  }
  return take_date(word, said) || take_clock(word, said);
}

// "Fri, 20 Nov 2026 14:00:00 +0100", "2026-11-20 14:00 UTC", "Nov 20 2026", "yesterday 2 pm".
std::string said_in_words(const std::string& lowered, bool& is_local) {
  SaidTime said;
  const auto is_digit_at = [&lowered](std::size_t at) {
    return at < lowered.size() && lowered[at] >= '0' && lowered[at] <= '9';
  };
  std::string word;
  for (std::size_t i = 0; i <= lowered.size(); ++i) {
    const char c = i < lowered.size() ? lowered[i] : ' ';
    const bool is_mark = c == 't' && i > 0 && is_digit_at(i - 1) && is_digit_at(i + 1);
    const bool is_comma = c == ',' && !(is_digit_at(i + 1) && word.find(':') != word.npos);
    if (c != ' ' && !is_mark && !is_comma) {
      word += c;
      continue;
    }
    // A lone number before "am" or "pm" is an hour.
    const std::string_view rest = std::string_view(lowered).substr(std::min(i + 1, lowered.size()));
    if (all_digits(word) && (rest == "am" || rest == "pm")) word += ":00";
    if (!word.empty() && !take_word(word, said)) return {};
    word.clear();
  }
  if (said.month > 0 && said.date.empty() && said.year.size() == 4 && said.day > 0) {
    said.date = said.year + (said.month < 10 ? "-0" : "-") + std::to_string(said.month) +
                (said.day < 10 ? "-0" : "-") + std::to_string(said.day);
  } else if (said.month > 0 || said.day > 0 || !said.year.empty()) {
    return {};
  }
  const bool is_word = said.date == "today" || said.date == "yesterday";
  if (said.date.empty() || is_word) {
    if (said.clock.empty() || !said.zone.empty())
      return is_word && said.zone.empty() ? said.date : "";
    is_local = true;
    const std::string today = in_today(said.clock);
    return is_word ? said.date + today.substr(today.find('+')) : today;
  }
  is_local = !said.clock.empty() && said.zone.empty();
  const std::string moment =
      said.clock.empty() ? said.date : said.date + "T" + said.clock + said.zone;
  return wire::parse_rfc3339_ns(is_local ? moment + "Z" : moment).ok() ? moment : "";
}

// Numbers: a year, a date, and counts since 1970 in units that are none; with or without "@".
std::string count_meant(const std::string& text) {
  const std::string digits = text.substr(text.starts_with('@') ? 1 : 0);
  if (!all_digits(digits)) return {};
  if (digits.size() == text.size()) {
    if (text.size() == 4) return text + "-01-01";
    const std::string date = text.substr(0, 4) + "-" + text.substr(4, 2) + "-" + text.substr(6);
    if (text.size() == 8 && wire::parse_rfc3339_ns(date).ok()) return date;
    if (text.size() <= 9) return {};
  }
  constexpr std::size_t kSecondsDigits = 10;
  for (const std::size_t places : {0u, 3u, 6u, 9u}) {
    if (digits.size() != kSecondsDigits + places) continue;
    return "@" + digits.substr(0, kSecondsDigits) +
           (places > 0 ? "." + digits.substr(kSecondsDigits) : "");
  }
  return {};
}

}  // namespace

std::string time_meant(const std::string& given, bool& is_local) {
  constexpr std::int64_t kNow = 1'800'000'000'000'000'000;
  const auto is_time = [](const std::string& text) { return wire::parse_time_ns(text, kNow).ok(); };
  if (is_time(given)) return {};
  std::string text = in_lower_case(given);
  text.erase(
      std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      text.end());
  if (text.starts_with(' ')) text.erase(0, 1);
  if (text.ends_with(' ')) text.pop_back();
  if (const std::string count = count_meant(text); is_time(count)) return count;
  using Word = std::pair<std::string_view, const char*>;
  for (const auto& [word, meant] :
       {Word{"tomorrow", "today+1d"}, Word{"midnight", "today"}, Word{"epoch", "@0"},
        Word{"last hour", "-1h"}, Word{"last day", "-1d"}, Word{"last week", "-7d"},
        Word{"last month", "-30d"}, Word{"last year", "-365d"}}) {
    if (text == word) return meant;
  }
  if (text == "noon") {
    is_local = true;
    return "today+12h";
  }
  std::string whole = text;  // "now - 1h"
  std::erase(whole, ' ');
  const bool is_word =
      whole.starts_with("now") || whole.starts_with("today") || whole.starts_with("yesterday");
  if (is_word && is_time(whole)) return whole;
  if (const std::string moment = said_in_words(text, is_local); !moment.empty()) return moment;
  is_local = false;
  const std::string distance = duration_meant(given);
  if (distance.empty() || all_digits(given)) return {};
  return (given.starts_with('+') ? "+" : "-") + distance;
}

}  // namespace edgecase::cli
