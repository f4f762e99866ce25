// The functions of a SELECT: of each window of time one row, or several (top, distinct, ...), or of
// each point one (derivative without a window, ...). A plan is made once for a statement, and
// opened for each group; immutable once made. A call is one of them, understood (calls.cc):
// refusals have InfluxDB's words. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "influxql/points.h"
#include "influxql/statement.h"
#include "influxql/time_windows.h"
#include "influxql/units.h"

namespace edgecase::influxql {

// How GROUP BY time cuts, and what stands where nothing is.
struct Windows {
  std::int64_t every_ns = 0;  // 0: one window, of all that is read
  std::int64_t offset_ns = 0;
  const wire::TimeZone* zone = nullptr;  // null: UTC; outlives the plan
  TimeSpan span;                         // what is answered
  bool is_descending = false;
  Fill fill = Fill::Null;
  bool has_fill = false;
  double fill_number = 0;
  bool fill_is_integer = false;
  // `every_ns` is of the statement around this one, which has none itself.
  bool is_inherited = false;
  // LIMIT and OFFSET, of what each function gives, as InfluxDB has it: where functions beside each
  // other give rows of different times, there are more rows than this. 0: none.
  std::int64_t limit = 0, offset = 0;
};

// Where in the points the value of a name is, and what type it has; Null: it is nowhere stored.
struct ColumnPlace {
  std::size_t index = 0;
  Cell::Kind kind = Cell::Kind::Null;
  bool is_tag = false;
  bool is_value = true;  // what functions take
};

class FunctionPlan {
 public:
  using Columns = std::function<Result<ColumnPlace>(const Expr& name)>;

  // `leaves` are what stands in the fields between operators: calls, and names beside a selector.
  // Wildcards and regular expressions were replaced before; the expressions outlive the plan.
  // InvalidArgument, with InfluxDB's words: it cannot be answered.
  static Result<FunctionPlan> make(const std::vector<const Expr*>& leaves, const Columns& columns,
                                   const Windows& windows);
  ~FunctionPlan();

  // What has to be read for what is answered: derivative(mean(v)) needs a window more before it.
  TimeSpan span_to_read() const;
  // What each leaf comes to, before there are rows; for those who ask this statement in brackets.
  const std::vector<Cell::Kind>& kinds() const;
  // Opens one group. Its points have one cell for each leaf, the time as InfluxDB shows it.
  std::unique_ptr<PointSource> open(std::unique_ptr<PointSource> points, Spending& spending) const;
  // Whether a feed of so many parts will do in place of points; whether windows that it cannot
  // answer have rows without a value then.
  bool takes_many(std::size_t parts) const;
  bool tells_lacks() const;
  // Whether all rows come by PointSource::next_many().
  bool gives_number_rows() const;
  std::unique_ptr<PointSource> open(std::unique_ptr<WindowFeed> feed, Spending& spending) const;
  // Where the units' points will do in any order within a window: where takes_many() says so.
  std::unique_ptr<PointSource> open(std::size_t units, PointFeed::Open open,
                                    Spending& spending) const;

 private:
  struct Impl;
  explicit FunctionPlan(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

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
