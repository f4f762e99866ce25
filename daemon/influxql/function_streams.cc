#include "influxql/function_streams.h"

#include <algorithm>
#include <utility>

#include "influxql/cells.h"
#include "influxql/fill.h"
#include "influxql/reducers.h"
#include "influxql/transforms.h"
#include "wire/reading_key.h"

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

}  // namespace edgecase::influxql
