// The stages that a call's values go through, from the points of a group to samples: values of
// windows, the time they show, fill, what is made of values before. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "influxql/functions.h"
#include "influxql/points.h"
#include "influxql/time_windows.h"

namespace edgecase::influxql {

// Takes the points of a group, one after another, for a stream that gives what they come to.
class PointTaker {
 public:
  virtual ~PointTaker() = default;
  virtual Status take(const Point& point) = 0;
  // The same of many that have nothing but a number in the column that it takes, where
  // FunctionPlan::takes_many() says so; takes_summary(): whether what is known of them will do.
  virtual std::size_t column() const = 0;
  virtual Status take_numbers(const wire::Numbers& /*numbers*/) { return ok(); }
  virtual bool takes_summary(const NumberSummary& /*summary*/) const { return false; }
  virtual void take_summary(const NumberSummary& /*summary*/) {}
  // What comes now is in another window than what came.
  virtual Status leave(const Window& window) = 0;
  // The same, where that cannot be answered, whatever was taken of it.
  virtual Status give_up(const Window& /*window*/) { return ok(); }
  virtual void finish() = 0;  // behind the last window
};

// What the streams of one group share; outlives them.
struct StreamSetting {
  const Windows& windows;
  const WindowGrid& grid;
  const Window& now;  // that is being read
  Spending& spending;
  std::vector<std::size_t> beside;  // cells wanted with a chosen point
  bool is_alone = false;            // no other function beside it
  TimeSpan most;                    // that any of them may take its points from
  TimeSpan read;                    // for all functions together
};

// The span of windows that a call needs to answer for `span`: for derivative and its like InfluxDB
// begins a window earlier.
TimeSpan span_of(const Call& call, const TimeSpan& span, const Windows& windows);
// Begun that many windows earlier; against the order of time, ended later.
TimeSpan begun_earlier(const TimeSpan& span, const Windows& windows, std::int64_t count);

// `is_inside`: another function takes the samples. `takers` gets whatever takes points for the
// stream: borrowed from it.
std::unique_ptr<SampleStream> make_stream(const Call& call, const StreamSetting& setting,
                                          const TimeSpan& span, bool is_inside,
                                          std::vector<PointTaker*>& takers);

// The plan of make_number_rows(): what it is made of, and what keeps that.
struct NumberRowsPlan {
  std::shared_ptr<const void> kept;
  const Windows& windows;
  const WindowGrid& grid;
};

// The rows of a group whose functions give a number for each window of one column
// (Call::gives_number()), on UTC's grid, without LIMIT: as streams would give them, but many side
// by side, made of as many readings as the feed holds.
std::unique_ptr<PointSource> make_number_rows(NumberRowsPlan plan,
                                              const std::vector<const Call*>& calls,
                                              std::unique_ptr<WindowFeed> feed, Spending& spending);

// The number of fill(number), as a value of this kind; of texts and truth values the empty one.
Cell fill_cell(const Windows& windows, Cell::Kind kind);

// fill(…) of one function: a sample for each window of what is answered, made up where the function
// gave none. Made lazily: a window is made when it is asked for.
class FillStream : public SampleStream {
 public:
  // `samples` has one for a window, with the window's beginning as its time. `now` is the window
  // that is being read: before it there is nothing to come. A gap of more windows than `spending`
  // has left is LimitReached at once, but where LIMIT ends the answer before. `is_inside`: windows
  // are made up for another function, and are no rows that are counted by themselves. All of them
  // outlive it.
  FillStream(std::unique_ptr<SampleStream> samples, const Windows& windows, Fill fill, Cell number,
             const WindowGrid& grid, const TimeSpan& span, const Window& now, Spending& spending,
             bool is_inside);

  Result<Pull> pull(Sample& sample) override;

 private:
  void begin();
  bool is_before(std::int64_t a_ns, std::int64_t b_ns) const;
  Status count_gap(bool is_later) const;
  void make_up(Sample& sample) const;
  Cell on_line() const;

  const std::unique_ptr<SampleStream> samples_;
  const Fill fill_;
  const Cell number_;
  const WindowGrid& grid_;
  const TimeSpan span_;
  const bool is_descending_, has_limit_, is_inside_;
  const Window& now_;
  Spending& spending_;

  bool has_begun_ = false, has_ended_ = false;
  bool has_next_ = false;
  Sample next_;  // the function's, not yet reached
  Cell last_;    // of the function; null: none yet
  std::int64_t last_ns_ = 0;
  std::int64_t window_ns_ = 0, zone_offset_ns_ = 0;
};

// Reducers make of a window's values what a function comes to (aggregates.cc, selectors.cc), and
// transforms a value of one and of those before it (transforms.cc): point by point, without keeping
// more of them than the function needs. One thread.

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
