#include "influxql/fill.h"

#include <algorithm>
#include <utility>

#include "influxql/cells.h"
#include "query/query_limits.h"

namespace edgecase::influxql {

Cell fill_cell(const Windows& windows, Cell::Kind kind) {
  Cell cell;
  cell.kind = kind;
  cell.number = windows.fill_number;
  if (kind != Cell::Kind::Integer) return cell;
  cell.integer = whole_of(windows.fill_number);
  return cell;
}

FillStream::FillStream(std::unique_ptr<SampleStream> samples, const Windows& windows, Fill fill,
                       Cell number, const WindowGrid& grid, const TimeSpan& span, const Window& now,
                       Spending& spending, bool is_inside)
    : samples_(std::move(samples)),
      fill_(fill),
      number_(std::move(number)),
      grid_(grid),
      span_(span),
      is_descending_(windows.is_descending),
      has_limit_(windows.limit > 0),
      is_inside_(is_inside),
      now_(now),
      spending_(spending) {}

bool FillStream::is_before(std::int64_t a_ns, std::int64_t b_ns) const {
  return is_descending_ ? a_ns > b_ns : a_ns < b_ns;
}

// What has no beginning begins with the first window that has a value.
void FillStream::begin() {
  has_begun_ = true;
  const bool is_open = is_descending_ ? !span_.has_to() : !span_.has_from();
  const std::int64_t first_ns = is_descending_ ? span_.to_ns : span_.from_ns;
  window_ns_ = is_open ? next_.time_ns : grid_.window_of(first_ns).from_ns;
  zone_offset_ns_ = grid_.zone_offset_ns(window_ns_);
}

Result<Pull> FillStream::pull(Sample& sample) {
  bool is_later = false;
  if (!has_next_ && !has_ended_) {
    EC_ASSIGN_OR_RETURN(const Pull pulled, samples_->pull(next_));
    has_next_ = pulled == Pull::Taken;
    has_ended_ = pulled == Pull::Ended;
    is_later = pulled == Pull::Later;
  }
  if (!has_begun_) {
    if (!has_next_) return is_later ? Pull::Later : Pull::Ended;
    begin();
  }
  // What has no end ends with the last window that has a value.
  const bool is_open = is_descending_ ? !span_.has_from() : !span_.has_to();
  if (is_later) {
    const bool needs_next = is_open || (fill_ == Fill::Linear && last_.kind != Cell::Kind::Null);
    if (needs_next || !is_before(window_ns_, now_.from_ns)) return Pull::Later;
  } else if (has_ended_ && !has_next_) {
    const std::int64_t last_ns = is_descending_ ? span_.from_ns : span_.to_ns;
    if (is_open || is_before(grid_.window_of(last_ns).from_ns, window_ns_)) return Pull::Ended;
  }
  if (has_next_ && !is_before(window_ns_, next_.time_ns)) {
    last_ = next_.value;
    last_ns_ = next_.time_ns;
    sample = std::move(next_);
    has_next_ = false;
  } else {
    EC_TRY(count_gap(is_later));
    if (is_inside_) EC_TRY(spending_.add_window());
    make_up(sample);
  }
  window_ns_ = grid_.step(window_ns_, is_descending_, zone_offset_ns_);
  return Pull::Taken;
}

// The windows from the one at hand to the next that has a value, or that is known to be the last.
Status FillStream::count_gap(bool is_later) const {
  if (has_limit_) return ok();
  std::int64_t end_ns = is_later ? now_.from_ns : is_descending_ ? span_.from_ns : span_.to_ns;
  if (has_next_) end_ns = next_.time_ns;
  const auto [first_ns, last_ns] = std::minmax(window_ns_, end_ns);
  return spending_.expect_windows(query::windows_between(first_ns, last_ns, grid_.every_ns()));
}

void FillStream::make_up(Sample& sample) const {
  sample.time_ns = window_ns_;
  sample.beside.clear();
  switch (fill_) {
    case Fill::Number: sample.value = number_; break;
    case Fill::Previous: sample.value = last_; break;
    case Fill::Linear: sample.value = on_line(); break;
    default: sample.value = Cell(); break;
  }
}

// Between the values of the windows around it, counted in windows.
Cell FillStream::on_line() const {
  if (last_.kind == Cell::Kind::Null || !has_next_) return {};
  const std::int64_t last = last_ns_ / grid_.every_ns();
  const std::int64_t next = next_.time_ns / grid_.every_ns();
  const auto steps = static_cast<double>(window_ns_ / grid_.every_ns() - last);
  const auto all = static_cast<double>(next - last);
  if (next == last) return {};
  if (last_.kind == Cell::Kind::Float)
    return float_cell((next_.value.number - last_.number) / all * steps + last_.number);
  if (last_.kind != Cell::Kind::Integer) return {};
  const std::int64_t rise = wrapped_difference(next_.value.integer, last_.integer);
  const double value = static_cast<double>(rise) / all * steps + static_cast<double>(last_.integer);
  return integer_cell(whole_of(value));
}

}  // namespace edgecase::influxql
