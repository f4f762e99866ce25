// fill(…) of one function: a sample for each window of what is answered, made up where the function
// gave none. Made lazily: a window is made when it is asked for. One thread.
#pragma once

#include <memory>

#include "influxql/functions.h"
#include "influxql/samples.h"
#include "influxql/window_grid.h"

namespace edgecase::influxql {

// The number of fill(number), as a value of this kind; of texts and truth values the empty one.
Cell fill_cell(const Windows& windows, Cell::Kind kind);

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
