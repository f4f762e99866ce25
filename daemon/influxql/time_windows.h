// The time that a statement is about, taken out of WHERE apart from the rest of it; and the windows
// of GROUP BY time. Immutable; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "edgecase/status.h"
#include "influxql/statement.h"
#include "wire/time_text.h"

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

struct Window {
  std::int64_t from_ns = 0, end_ns = 0;  // the end is not included

  bool contains(std::int64_t time_ns) const { return time_ns >= from_ns && time_ns < end_ns; }
};

// Where each window begins and ends, on the clocks of a time zone too: a day in which summer time
// begins has 23 hours.
class WindowGrid {
 public:
  // `every_ns` 0: there is one window, `span`. `zone` may be null (UTC), and outlives this.
  WindowGrid(std::int64_t every_ns, std::int64_t offset_ns, const wire::TimeZone* zone,
             const TimeSpan& span);

  bool is_cut() const { return every_ns_ > 0; }
  std::int64_t every_ns() const { return every_ns_; }
  Window window_of(std::int64_t time_ns) const;
  // When the window shows itself that this time is in; 1970 where everything is one window that
  // has no beginning.
  std::int64_t shown_time(std::int64_t time_ns) const;
  // East of UTC.
  std::int64_t zone_offset_ns(std::int64_t time_ns) const;
  // The beginning of the window after (or before) the one that begins at `from_ns`.
  // `zone_offset_ns` is what held there, and becomes what holds then.
  std::int64_t step(std::int64_t from_ns, bool is_descending, std::int64_t& zone_offset_ns) const;

 private:
  bool is_small(std::int64_t shift_ns) const;

  std::int64_t every_ns_;
  std::int64_t offset_ns_;
  const wire::TimeZone* zone_;
  TimeSpan span_;
};

}  // namespace edgecase::influxql
