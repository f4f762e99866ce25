#include "wire/query_request.h"

#include <algorithm>
#include <array>

#include "wire/suggest.h"

namespace edgecase::wire {
namespace {

constexpr std::array<std::string_view, 12> kAggregateNames = {
    "mean", "min", "max", "sum", "count", "first", "last", "stddev", "p50", "p95", "p99", "minmax"};

// What the same thing is called elsewhere.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kAliases = {{
    {"avg", "mean"},
    {"average", "mean"},
    {"minimum", "min"},
    {"lowest", "min"},
    {"maximum", "max"},
    {"highest", "max"},
    {"total", "sum"},
    {"n", "count"},
    {"oldest", "first"},
    {"newest", "last"},
    {"latest", "last"},
    {"std", "stddev"},
    {"stdev", "stddev"},
    {"sd", "stddev"},
    {"median", "p50"},
    {"q50", "p50"},
}};

// "Mean" as "mean". No name is as long as what is not looked at.
constexpr std::size_t kNameMaxBytes = 32;
std::string lower_name(std::string_view text) {
  std::string lowered(text.substr(0, kNameMaxBytes));
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lowered;
}

}  // namespace

Result<Aggregate> parse_aggregate(std::string_view name) {
  const std::string lowered = lower_name(name);
  std::string_view known = lowered;
  for (const auto& [alias, meant] : kAliases) {
    if (alias == lowered) known = meant;
  }
  const auto* const found = std::find(kAggregateNames.begin(), kAggregateNames.end(), known);
  if (found != kAggregateNames.end())
    return static_cast<Aggregate>(found - kAggregateNames.begin());
  const std::string_view near = nearest_aggregate(name);
  return invalid_argument("unknown aggregate \"" + lowered +
                          "\"; one of mean min max sum count first last stddev p50 p95 p99 minmax" +
                          (near.empty() ? "" : ", did you mean " + std::string(near) + "?"));
}

std::string_view nearest_aggregate(std::string_view name) {
  return nearest_word(lower_name(name), kAggregateNames);
}

std::string_view aggregate_name(Aggregate aggregate) {
  return kAggregateNames[static_cast<std::size_t>(aggregate)];
}

}  // namespace edgecase::wire
