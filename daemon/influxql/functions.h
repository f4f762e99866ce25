// The functions of a SELECT: of each window of time one row, or several (top, distinct, ...), or of
// each point one (derivative without a window, ...). A plan is made once for a statement, and
// opened for each group; immutable once made. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "influxql/points.h"
#include "influxql/statement.h"
#include "influxql/time_condition.h"
#include "influxql/window_feed.h"

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

}  // namespace edgecase::influxql
