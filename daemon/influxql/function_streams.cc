#include "influxql/function_streams.h"

#include <algorithm>
#include <utility>

#include "influxql/points.h"
#include "query/query_service.h"
#include "wire/reading.h"

namespace edgecase::influxql {
namespace {

bool is_taken(const TimeSpan& span, const Point& point, std::size_t column) {
  return span.contains(point.time_ns) && point.cells[column].kind != Cell::Kind::Null;
}

// What a function makes of each window.
class WindowStream : public SampleStream, public PointTaker {
 public:
  WindowStream(const Call& call, const StreamSetting& setting, const TimeSpan& span)
      : column_(call.column.index),
        grid_(setting.grid),
        span_(span),
        shows_windows_(!call.has_own_times() &&
                       (setting.grid.is_cut() || !setting.is_alone || !call.is_selector())),
        reducer_(call.is_selector()
                     ? make_selector(call, setting.beside, !shows_windows_, setting.spending)
                     : make_aggregate(call, setting.spending)),
        made_(setting.spending) {}

  Status take(const Point& point) override {
    if (!is_taken(span_, point, column_)) return ok();
    has_any_ = true;
    return reducer_->add(point.cells[column_], point);
  }

  std::size_t column() const override { return column_; }
  Status take_numbers(const wire::Numbers& numbers) override {
    const auto first =
        std::find_if(numbers.times_ns.begin(), numbers.times_ns.end(),
                     [this](std::int64_t time_ns) { return span_.contains(time_ns); });
    if (first == numbers.times_ns.end()) return ok();
    const wire::Numbers rest =
        numbers.from(static_cast<std::size_t>(first - numbers.times_ns.begin()));
    has_any_ = true;
    return reducer_->add_numbers(rest.first(rest.count_within(span_.from_ns, span_.to_ns)));
  }

  // What its span cuts it has to see.
  bool takes_summary(const NumberSummary& summary) const override {
    if (is_beside(summary)) return true;
    return span_.contains(wire::time_of_ordinal(summary.first_ordinal)) &&
           span_.contains(wire::time_of_ordinal(summary.last_ordinal)) &&
           reducer_->takes_summary(summary);
  }
  void take_summary(const NumberSummary& summary) override {
    if (is_beside(summary)) return;
    has_any_ = true;
    reducer_->add_summary(summary);
  }

  Status leave(const Window& window) override {
    if (!has_any_) return ok();
    has_any_ = false;
    samples_.clear();
    EC_TRY(reducer_->finish(samples_));
    for (Sample& sample : samples_) {
      if (sample.time_ns == kNoTime) sample.time_ns = window.from_ns;
      if (shows_windows_) sample.time_ns = grid_.shown_time(sample.time_ns);
      EC_TRY(made_.push(std::move(sample)));
    }
    return ok();
  }

  Status give_up(const Window& window) override {
    samples_.clear();
    if (std::exchange(has_any_, false)) EC_TRY(reducer_->finish(samples_));
    Sample lacking;
    lacking.time_ns = shows_windows_ ? grid_.shown_time(window.from_ns) : window.from_ns;
    lacking.is_lacking = true;
    return made_.push(std::move(lacking));
  }

  void finish() override { has_ended_ = true; }

  Result<Pull> pull(Sample& sample) override {
    if (made_.pop(sample)) return Pull::Taken;
    return has_ended_ ? Pull::Ended : Pull::Later;
  }

 private:
  bool is_beside(const NumberSummary& summary) const {
    return wire::time_of_ordinal(summary.last_ordinal) < span_.from_ns ||
           wire::time_of_ordinal(summary.first_ordinal) > span_.to_ns;
  }

  const std::size_t column_;
  const WindowGrid& grid_;
  const TimeSpan span_;
  const bool shows_windows_;
  const std::unique_ptr<Reducer> reducer_;
  bool has_any_ = false, has_ended_ = false;
  std::vector<Sample> samples_;
  SampleQueue made_;
};

// Each point as it is.
class PointStream : public SampleStream, public PointTaker {
 public:
  PointStream(const Call& call, const StreamSetting& setting, const TimeSpan& span)
      : column_(call.column.index), span_(span), taken_(setting.spending) {}

  std::size_t column() const override { return column_; }

  Status take(const Point& point) override {
    if (!is_taken(span_, point, column_)) return ok();
    return taken_.push({point.time_ns, point.cells[column_], {}});
  }
  Status leave(const Window&) override { return ok(); }
  void finish() override { has_ended_ = true; }

  Result<Pull> pull(Sample& sample) override {
    if (taken_.pop(sample)) return Pull::Taken;
    return has_ended_ ? Pull::Ended : Pull::Later;
  }

 private:
  const std::size_t column_;
  const TimeSpan span_;
  bool has_ended_ = false;
  SampleQueue taken_;
};

class TransformStream : public SampleStream {
 public:
  TransformStream(std::unique_ptr<SampleStream> samples, std::unique_ptr<Transform> transform)
      : samples_(std::move(samples)), transform_(std::move(transform)) {}

  Result<Pull> pull(Sample& sample) override {
    while (!has_ended_) {
      EC_ASSIGN_OR_RETURN(const Pull pulled, samples_->pull(given_));
      if (pulled == Pull::Later) return Pull::Later;
      if (pulled == Pull::Ended) {
        has_ended_ = true;
        return transform_->finish(sample) ? Pull::Taken : Pull::Ended;
      }
      if (given_.value.kind == Cell::Kind::Null) continue;
      EC_ASSIGN_OR_RETURN(const bool is_made, transform_->add(given_, sample));
      if (is_made) return Pull::Taken;
    }
    return Pull::Ended;
  }

 private:
  const std::unique_ptr<SampleStream> samples_;
  const std::unique_ptr<Transform> transform_;
  bool has_ended_ = false;
  Sample given_;
};

bool is_filled(const Call& call, const StreamSetting& setting) {
  return setting.grid.is_cut() && setting.windows.fill != Fill::None && !call.has_own_times() &&
         call.function != Function::Distinct;
}

}  // namespace

TimeSpan span_of(const Call& call, const TimeSpan& span, const Windows& windows) {
  if (windows.every_ns == 0 || call.is_of_window() || call.function == Function::CumulativeSum ||
      call.function == Function::Integral)
    return span;
  return begun_earlier(span, windows, 1);
}

// A span without a beginning has no earlier one.
TimeSpan begun_earlier(const TimeSpan& span, const Windows& windows, std::int64_t count) {
  TimeSpan longer = span;
  std::int64_t by_ns = 0;
  const bool is_endless = __builtin_mul_overflow(windows.every_ns, count, &by_ns);
  if (!windows.is_descending && span.has_from()) {
    if (is_endless || __builtin_sub_overflow(span.from_ns, by_ns, &longer.from_ns))
      longer.from_ns = kMinTime;
  } else if (windows.is_descending && span.has_to()) {
    if (is_endless || __builtin_add_overflow(span.to_ns, by_ns, &longer.to_ns))
      longer.to_ns = kMaxTime;
  }
  return longer;
}

std::unique_ptr<SampleStream> make_stream(const Call& call, const StreamSetting& setting,
                                          const TimeSpan& around, bool is_inside,
                                          std::vector<PointTaker*>& takers) {
  const TimeSpan span = span_of(call, around, setting.windows);
  // Rows of a statement in brackets have the times of their windows, which may begin before `span`.
  TimeSpan taken = span;
  taken.narrow(setting.most);
  if (taken.from_ns == setting.read.from_ns && taken.to_ns == setting.read.to_ns) taken = {};
  if (!call.is_of_window()) {
    std::unique_ptr<SampleStream> given;
    if (call.inside) {
      given = make_stream(*call.inside, setting, span, true, takers);
    } else {
      auto points = std::make_unique<PointStream>(call, setting, taken);
      takers.push_back(points.get());
      given = std::move(points);
    }
    return std::make_unique<TransformStream>(
        std::move(given),
        make_transform(call, setting.grid, setting.windows.is_descending, setting.spending));
  }
  auto windows = std::make_unique<WindowStream>(call, setting, taken);
  takers.push_back(windows.get());
  if (!is_filled(call, setting)) return windows;
  const bool is_count =
      call.function == Function::Count || call.function == Function::CountDistinct;
  const bool is_zero = is_count && setting.windows.fill == Fill::Null;
  return std::make_unique<FillStream>(
      std::move(windows), setting.windows, is_zero ? Fill::Number : setting.windows.fill,
      is_zero ? integer_cell(0) : fill_cell(setting.windows, call.kind), setting.grid, span,
      setting.now, setting.spending, is_inside);
}

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
