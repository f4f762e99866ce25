// derivative, moving_average and whatever else makes a value of a value and of those before it; and
// integral. One thread.
#pragma once

#include <memory>

#include "influxql/calls.h"
#include "influxql/samples.h"
#include "influxql/window_grid.h"

namespace edgecase::influxql {

class Transform {
 public:
  virtual ~Transform() = default;
  // The next value, in the order of the statement; true: `made` is what it came to. LimitReached.
  virtual Result<bool> add(const Sample& sample, Sample& made) = 0;
  // Behind the last.
  virtual bool finish(Sample& made);
};

// `grid` outlives it.
std::unique_ptr<Transform> make_transform(const Call& call, const WindowGrid& grid,
                                          bool is_descending, Spending& spending);

}  // namespace edgecase::influxql
