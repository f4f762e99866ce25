// A call of a function, understood: which it is, what it takes and what it comes to. Refusals have
// InfluxDB's words. Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "influxql/functions.h"

namespace edgecase::influxql {

// The place of a name that is no tag: it does not divide what top() and bottom() are of.
inline constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

enum class Function : unsigned char {
  // These give one value for a window.
  Count,
  CountDistinct,
  Sum,
  Mean,
  Median,
  Mode,
  Spread,
  Stddev,
  // These choose one of a window's points.
  Min,
  Max,
  First,
  Last,
  Percentile,
  // These give several values for a window.
  Distinct,
  Top,
  Bottom,
  Sample,
  // These need the points before.
  Derivative,
  Difference,
  MovingAverage,
  CumulativeSum,
  Elapsed,
  Integral,
};

struct Call {
  Function function = Function::Count;
  bool is_non_negative = false;     // derivative, difference
  ColumnPlace column;               // where nothing is inside
  std::unique_ptr<Call> inside;     // derivative(mean(v)): mean(v)
  std::vector<std::size_t> groups;  // top, bottom: the tags they are of
  std::int64_t count = 0;           // top, bottom, sample, moving_average
  double percent = 0;
  std::int64_t unit_ns = 0;             // derivative, elapsed, integral
  Cell::Kind kind = Cell::Kind::Null;   // of what it gives; Null: it gives nothing
  Cell::Kind taken = Cell::Kind::Null;  // of what it is given
  // Nothing is stored of what it is of; tags are no values.
  bool is_of_nothing = false;

  bool is_selector() const;   // beside it, names stand for the chosen point's
  bool is_of_window() const;  // else it gives a value for each point
  // How many windows before the first that is answered are needed for it.
  std::int64_t windows_before() const;
  // top, bottom and sample show each point's own time.
  bool has_own_times() const;
  // Whether it takes many numbers of a window at once, and whether it takes them in any order.
  bool takes_numbers() const;
  bool takes_any_order() const;
  // Whether it makes one number of each window of numbers.
  bool gives_number() const;
};

// InvalidArgument.
Result<Call> make_call(const Expr& call, const FunctionPlan::Columns& columns,
                       const Windows& windows);

}  // namespace edgecase::influxql
