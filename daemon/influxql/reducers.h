// Reducers make of a window's values what a function comes to (aggregates.cc, selectors.cc), and
// transforms a value of one and of those before it (transforms.cc): point by point, without keeping
// more of them than the function needs. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "influxql/functions.h"
#include "influxql/points.h"
#include "influxql/time_windows.h"

namespace edgecase::influxql {

// As the time of a sample: it has none of its own, the window's is shown.
inline constexpr std::int64_t kNoTime = INT64_MIN;

class Reducer {
 public:
  virtual ~Reducer() = default;
  // `value` is one of the cells of `point`, and not null. LimitReached.
  virtual Status add(const Cell& value, const Point& point) = 0;
  // Whether it takes many numbers at once, of the type that it takes: then with the same result.
  virtual bool takes_numbers() const { return false; }
  virtual Status add_numbers(const wire::Numbers& /*numbers*/) { return ok(); }
  // Whether what is known of many of that type will do in their place: with the same result, sums
  // of floats within what NumberSum (query/aggregator.h) says.
  virtual bool takes_summary(const NumberSummary& /*summary*/) const { return false; }
  virtual void add_summary(const NumberSummary& /*summary*/) {}
  // Whether a summary of doubles that tells count and sum alone will do.
  virtual bool takes_sums() const { return false; }
  // What windows come to of which count and sum are known: as finish() gives it of each.
  virtual void reduce_sums(std::span<const WindowSums::Window> /*sums*/,
                           NumberRows::Column& /*made*/) const {}
  // What many come to, cut into windows: `ends` has where each ends, and the next one begins. The
  // same as add_numbers() and finish() of each, which gives one sample; before the first of them
  // nothing was added.
  virtual Status reduce(const wire::Numbers& numbers, std::span<const std::uint32_t> ends,
                        NumberRows::Column& made);
  // What the values since the last call come to, of which there is at least one. In the order of
  // their times; times of points, or kNoTime.
  virtual Status finish(std::vector<Sample>& made) = 0;
};

// For each function of a window. `beside`: which cells of a chosen point are wanted with it;
// `shows_time`: its time is.
std::unique_ptr<Reducer> make_aggregate(const Call& call, Spending& spending);
std::unique_ptr<Reducer> make_selector(const Call& call, const std::vector<std::size_t>& beside,
                                       bool shows_time, Spending& spending);

// derivative, moving_average and their like; and integral.
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
