// The stages that a call's values go through, from the points of a group to samples: values of
// windows, the time they show, fill, what is made of values before. One thread.
#pragma once

#include <memory>
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

}  // namespace edgecase::influxql
