// Any bytes as what people write on a command line and in URLs: selectors, series, times,
// durations, sizes. The first line is a selector, the second a name, the rest one of the others.
#include <string>
#include <string_view>

#include "fuzz/fuzz_targets.h"
#include "wire/names.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::test {
namespace {

std::string_view take_text_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

void take_names(std::string_view text, std::string_view name) {
  const auto selector = wire::parse_selector(text);
  if (selector.ok() && wire::check_name("device", name).ok()) {
    demand(text.size() <= wire::kSelectorMaxBytes);
    const bool matches = wire::glob_matches(selector->device, name);
    if (wire::is_literal(selector->device)) {
      demand(matches == (wire::unescape_name(selector->device) == name));
    }
    demand(!matches || wire::globs_overlap(selector->device, wire::escape_name(name)));
    demand(wire::globs_overlap(selector->device, selector->sensor) ==
           wire::globs_overlap(selector->sensor, selector->device));
  }
  demand(wire::unescape_name(wire::escape_name(name)) == name);
  const auto series = wire::parse_series_name(text);
  if (series.ok()) demand(!series->device.empty() && !series->sensor.empty());
}

void take_numbers(std::string_view text) {
  constexpr std::int64_t kNow = 1'763'647'200'000'000'000;
  static_cast<void>(wire::parse_time_ns(text, kNow));
  static_cast<void>(wire::parse_rfc3339_ns(text));
  static_cast<void>(wire::parse_aggregate(text));
  const auto duration = wire::parse_duration_ns(text);
  if (duration.ok()) {
    const auto again = wire::parse_duration_ns(wire::format_duration(*duration));
    demand(again.ok() && *again == *duration);
  }
  const auto size = wire::parse_size_bytes(text);
  if (size.ok()) demand(!wire::format_size(*size).empty());
}

}  // namespace

void take_selectors(std::string_view bytes) {
  // Matching may take the product of the two lengths.
  constexpr std::size_t kMax = 4'096;
  bytes = bytes.substr(0, kMax);
  const std::string_view selector = take_text_line(bytes);
  const std::string_view name = take_text_line(bytes);
  take_names(selector, name);
  take_numbers(bytes);
}

}  // namespace edgecase::test
