// Takes the condition on the time out of WHERE, apart from the rest of it. No state; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "edgecase/result.h"
#include "influxql/statement.h"
#include "wire/time_zone.h"

namespace edgecase::influxql {

// InfluxDB's first and last time.
inline constexpr std::int64_t kMinTime = std::numeric_limits<std::int64_t>::min() + 2;
inline constexpr std::int64_t kMaxTime = std::numeric_limits<std::int64_t>::max() - 1;

struct TimeSpan {
  std::int64_t from_ns = kMinTime, to_ns = kMaxTime;  // both included

  bool has_from() const { return from_ns != kMinTime; }
  bool has_to() const { return to_ns != kMaxTime; }
  bool contains(std::int64_t time_ns) const { return time_ns >= from_ns && time_ns <= to_ns; }
  void narrow(const TimeSpan& other);
};

// `span` is narrowed by every comparison of the time in `where`, whether AND or OR joins it, as in
// InfluxDB; what is left is answered. `zone`: of times without an offset; null: UTC.
Result<std::optional<Expr>> split_time(const Expr& where, std::int64_t now_ns,
                                       const wire::TimeZone* zone, TimeSpan& span);
// A time as WHERE has it: now() - 1h, '2020-01-01', nanoseconds.
Result<std::int64_t> time_of(const Expr& expression, std::int64_t now_ns,
                             const wire::TimeZone* zone);

}  // namespace edgecase::influxql
