#include "time_meant.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "typed_line.h"
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

std::string time_meant(const std::string& text, bool& is_local) {
  constexpr std::int64_t kNow = 1'800'000'000'000'000'000;
  if (wire::parse_time_ns(text, kNow).ok()) return {};
  const std::string lowered = in_lower_case(text);
  const bool is_word = lowered.starts_with("now") || lowered.ends_with("day");
  if (is_word && wire::parse_time_ns(lowered, kNow).ok()) return lowered;
  if (const std::string clock = clock_meant(text); !clock.empty()) {
    is_local = true;
    return in_today(clock);
  }
  const std::size_t space = text.find_first_of(" T");
  const std::string day = text.substr(0, space);
  const std::string date = wire::parse_rfc3339_ns(day).ok() ? day : date_meant(day);
  if (!date.empty() && space == std::string::npos) return date;
  const std::string clock = space == std::string::npos ? "" : clock_meant(text.substr(space + 1));
  if (!date.empty() && !clock.empty()) {
    is_local = true;
    return date + "T" + clock;
  }
  const std::string distance = duration_meant(text);
  if (distance.empty() || all_digits(text)) return {};
  return (text.starts_with('+') ? "+" : "-") + distance;
}

}  // namespace edgecase::cli
