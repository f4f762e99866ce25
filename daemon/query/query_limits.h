// Limits of what one question may take: limits.query-points, -series and -windows. InfluxQL obeys
// all of them, /api/v1/query that of windows; an error names the setting. QueryService holds the
// limits that are in force; who answers takes a copy.
#pragma once

#include <cstdint>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::query {

struct QueryLimits {
  std::uint64_t points = 200'000'000;    // read from the store
  std::uint64_t series = 100'000;        // that match
  std::uint64_t windows = 10'000'000;    // of time, in all
  std::uint64_t held_bytes = 16u << 20;  // of values that a function needs at once; no setting
};

// One kind of limit: what InfluxDB calls it, and the setting here.
struct QueryLimit {
  std::string_view influx_name, setting;
};
inline constexpr QueryLimit kPointsLimit{"max-select-point", "limits.query-points"};
inline constexpr QueryLimit kSeriesLimit{"max-select-series", "limits.query-series"};
inline constexpr QueryLimit kWindowsLimit{"max-select-buckets", "limits.query-windows"};

// LimitReached where `count` is more than `most`: InfluxDB's words, then the setting's name.
Status check_limit(const QueryLimit& limit, std::uint64_t count, std::uint64_t most);

// How many windows of this length (> 0) there are from `first_ns` to `last_ns`, both included and
// in order.
std::uint64_t windows_between(std::int64_t first_ns, std::int64_t last_ns, std::int64_t every_ns);

}  // namespace edgecase::query
