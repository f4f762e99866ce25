#include "wire/query_request.h"

#include <array>

namespace edgecase::wire {
namespace {

constexpr std::array<std::string_view, 11> kAggregateNames = {
    "mean", "min", "max", "sum", "count", "first", "last", "stddev", "p50", "p95", "p99"};

}  // namespace

Result<Aggregate> parse_aggregate(std::string_view name) {
  for (std::size_t i = 0; i < kAggregateNames.size(); ++i) {
    if (kAggregateNames[i] == name) return static_cast<Aggregate>(i);
  }
  return invalid_argument("unknown aggregate \"" + std::string(name) +
                          "\"; one of mean min max sum count first last stddev p50 p95 p99");
}

std::string_view aggregate_name(Aggregate aggregate) {
  return kAggregateNames[static_cast<std::size_t>(aggregate)];
}

}  // namespace edgecase::wire
