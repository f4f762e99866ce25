// Windows as rows of numbers. A window is taken by itself where its readings come from several
// groups, or are known unread; those that lie whole in what is held are cut out of it at once, as
// are those of which a group's sums are kept.
#include <algorithm>
#include <utility>

#include "influxql/function_streams.h"
#include "query/query_service.h"

namespace edgecase::influxql {
namespace {

// Rows that are made at once; and what is read for them: a step of a feed, which may decode a
// group, counts as so many of its readings. Some hundreds of microseconds.
constexpr std::size_t kRowsMax = 2'048;
constexpr std::size_t kReadingsMax = 16'384;
constexpr std::size_t kReadingsOfStep = 256;

class WindowRows final : public PointSource {
 public:
  WindowRows(NumberRowsPlan plan, const std::vector<const Call*>& calls,
             std::unique_ptr<WindowFeed> feed, Spending& spending)
      : plan_(std::move(plan)),
        column_(calls.front()->column.index),
        is_descending_(plan_.windows.is_descending),
        feed_(std::move(feed)),
        spending_(spending) {
    for (const Call* call : calls) {
      const bool is_count = call->function == Function::Count;
      Made each;
      each.kind = call->kind;
      each.reducer = call->is_selector() ? make_selector(*call, {}, false, spending)
                                         : make_aggregate(*call, spending);
      if (plan_.windows.fill == Fill::Number) each.without = fill_cell(plan_.windows, call->kind);
      if (is_count && plan_.windows.fill == Fill::Null) each.without.kind = Cell::Kind::Integer;
      takes_sums_ = takes_sums_ && each.reducer->takes_sums();
      functions_.push_back(std::move(each));
    }
  }

  Result<bool> next(Point& point) override {
    if (next_ == made_.size()) {
      EC_ASSIGN_OR_RETURN(const bool has_any, make());
      if (!has_any) return false;
    }
    EC_TRY(spending_.add_window());
    point.time_ns = made_.times_ns[next_];
    point.cells.resize(functions_.size());
    for (std::size_t i = 0; i < functions_.size(); ++i) made_.columns[i].get(next_, point.cells[i]);
    ++next_;
    return true;
  }

  Result<bool> next_many(NumberRows& rows) override {
    if (next_ == made_.size()) {
      EC_ASSIGN_OR_RETURN(const bool has_any, make());
      if (!has_any) return false;
    }
    made_.drop(next_);
    EC_TRY(spending_.add_windows(made_.size()));
    std::swap(rows, made_);
    next_ = made_.size();
    return true;
  }

 private:
  struct Made {
    Cell::Kind kind = Cell::Kind::Null;
    std::unique_ptr<Reducer> reducer;
    Cell without;  // of a window that has no value
  };

  // Gives values to all functions.
  class Taker final : public ValueTaker {
   public:
    explicit Taker(WindowRows& rows) : rows_(rows) {}

    bool takes(const NumberSummary& summary) override {
      return std::all_of(rows_.functions_.begin(), rows_.functions_.end(),
                         [&](const Made& each) { return each.reducer->takes_summary(summary); });
    }
    bool takes_sums() const override { return rows_.takes_sums_; }
    Status take(const NumberSummary& summary) override {
      has_any_ = true;
      for (Made& each : rows_.functions_) each.reducer->add_summary(summary);
      return ok();
    }
    Status take(const wire::Numbers& numbers) override {
      has_any_ = true;
      rows_.readings_ += numbers.size();
      for (Made& each : rows_.functions_) EC_TRY(each.reducer->add_numbers(numbers));
      return ok();
    }
    Status take(std::int64_t time_ns, const Cell& value) override {
      if (value.kind == Cell::Kind::Null) return ok();
      has_any_ = true;
      point_.time_ns = time_ns;
      for (Made& each : rows_.functions_) EC_TRY(each.reducer->add(value, point_));
      return ok();
    }
    bool has_any() const { return has_any_; }

   private:
    WindowRows& rows_;
    Point point_;
    bool has_any_ = false;
  };

  bool fills() const { return plan_.windows.fill != Fill::None; }
  bool is_before(std::int64_t a_ns, std::int64_t b_ns) const {
    return is_descending_ ? a_ns > b_ns : a_ns < b_ns;
  }

  // Some rows more. False: there are none left.
  Result<bool> make() {
    next_ = 0;
    made_.columns.resize(functions_.size());
    for (std::size_t i = 0; i < functions_.size(); ++i) made_.columns[i].kind = functions_[i].kind;
    made_.clear();
    readings_ = 0;
    while (made_.empty() || (made_.size() < kRowsMax && readings_ < kReadingsMax)) {
      EC_ASSIGN_OR_RETURN(const auto time_ns, feed_->next_time());
      if (!time_ns) {
        EC_TRY(fill_to_end());
        return !made_.empty();
      }
      Window window = plan_.grid.window_of(*time_ns);
      // The last window ends behind InfluxDB's last time.
      if (*time_ns == kMaxTime) window.end_ns = kMaxTime + 1;
      const std::int64_t shown_ns = plan_.grid.shown_time(window.from_ns);
      if (!std::exchange(has_begun_, true)) begin(shown_ns);
      if (fills() && is_before(window_ns_, shown_ns)) {
        EC_TRY(fill_before(shown_ns));
      } else {
        EC_TRY(take_window(window, shown_ns));
        EC_TRY(take_held());
        EC_TRY(take_sums());
      }
    }
    return true;
  }

  // What has no beginning begins with the first window that has a value.
  void begin(std::int64_t first_ns) {
    const TimeSpan& span = plan_.windows.span;
    const bool is_open = is_descending_ ? !span.has_to() : !span.has_from();
    const std::int64_t begin_ns = is_descending_ ? span.to_ns : span.from_ns;
    window_ns_ = is_open ? first_ns : plan_.grid.window_of(begin_ns).from_ns;
  }

  void step() {
    std::int64_t no_zone = 0;
    window_ns_ = plan_.grid.step(window_ns_, is_descending_, no_zone);
  }

  Status expect_until(std::int64_t end_ns) const {
    const auto [first_ns, last_ns] = std::minmax(window_ns_, end_ns);
    // Rows that are made already are counted once they are taken.
    return spending_.expect_windows(
        made_.size() + query::windows_between(first_ns, last_ns, plan_.grid.every_ns()));
  }

  void fill_one() {
    made_.times_ns.push_back(window_ns_);
    const bool is_previous = plan_.windows.fill == Fill::Previous;
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      NumberRows::Column& column = made_.columns[i];
      if (is_previous && has_last_) {
        column.add(last_bits_[i]);
      } else {
        column.add(functions_[i].without);
      }
    }
    step();
  }

  Status fill_before(std::int64_t end_ns) {
    EC_TRY(expect_until(end_ns));
    while (made_.size() < kRowsMax && is_before(window_ns_, end_ns)) fill_one();
    return ok();
  }

  // What has no end ends with the last window that has a value.
  Status fill_to_end() {
    const TimeSpan& span = plan_.windows.span;
    const bool is_open = is_descending_ ? !span.has_from() : !span.has_to();
    if (!fills() || !has_begun_ || is_open) return ok();
    const std::int64_t last_ns =
        plan_.grid.window_of(is_descending_ ? span.from_ns : span.to_ns).from_ns;
    if (is_before(last_ns, window_ns_)) return ok();
    EC_TRY(expect_until(last_ns));
    while (made_.size() < kRowsMax && !is_before(last_ns, window_ns_)) fill_one();
    return ok();
  }

  // One window, whatever its readings come from.
  Status take_window(const Window& window, std::int64_t shown_ns) {
    Taker taker(*this);
    for (; feed_->next_column(window); readings_ += kReadingsOfStep)
      EC_TRY(feed_->feed(window, taker));
    const bool is_lacking = feed_->lacks(window, column_);
    feed_->end(window);
    if (!taker.has_any() && !is_lacking) return ok();
    made_.times_ns.push_back(shown_ns);
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      samples_.clear();
      if (taker.has_any()) EC_TRY(functions_[i].reducer->finish(samples_));
      made_.columns[i].add(is_lacking ? Cell() : samples_.front().value);
    }
    note_last(!is_lacking);
    step();
    return ok();
  }

  // Windows that begin and end within what the feed holds.
  Status take_held() {
    if (is_descending_ || made_.empty()) return ok();
    const wire::Numbers numbers = feed_->held_numbers();
    if (numbers.empty()) return ok();
    cut(numbers);
    if (ends_.empty()) return ok();
    const wire::Numbers taken = numbers.first(ends_.back());
    for (std::size_t i = 0; i < functions_.size(); ++i)
      EC_TRY(functions_[i].reducer->reduce(taken, ends_, made_.columns[i]));
    note_last(true);
    readings_ += taken.size();
    end_at(made_.times_ns.back());
    return feed_->step_over(taken);
  }

  // Windows that lie in one group whole, whose sums are kept. Where fill() has something between
  // two, it stops.
  Status take_sums() {
    const std::span<const WindowSums::Window> sums = feed_->held_sums();
    if (sums.empty()) return ok();
    EC_ASSIGN_OR_RETURN(const auto time_ns, feed_->next_time());
    const std::int64_t first_ns = plan_.grid.window_of(*time_ns).from_ns;
    if (fills() && first_ns != window_ns_) return ok();
    const std::size_t rows_max = std::min(sums.size(), kRowsMax - made_.size());
    std::size_t count = 0;
    for (; count < rows_max; ++count) {
      const std::uint32_t number = sums[count].number - sums.front().number;
      if (fills() && number != count) break;
      made_.times_ns.push_back(first_ns + number * plan_.grid.every_ns());
    }
    if (count == 0) return ok();
    const auto taken = sums.first(count);
    for (std::size_t i = 0; i < functions_.size(); ++i)
      functions_[i].reducer->reduce_sums(taken, made_.columns[i]);
    note_last(true);
    end_at(made_.times_ns.back());
    return feed_->step_over(taken);
  }

  // Behind the window that begins there.
  void end_at(std::int64_t from_ns) {
    window_ns_ = from_ns + plan_.grid.every_ns();
    feed_->end({from_ns, window_ns_});
  }

  // Finds where windows end, and adds their times. Where fill() has something between two, it
  // stops.
  void cut(const wire::Numbers& numbers) {
    ends_.clear();
    const std::int64_t every_ns = plan_.grid.every_ns();
    const auto& times_ns = numbers.times_ns;
    // InfluxDB's first and last windows are cut short.
    if (every_ns > kMaxTime / 4 || times_ns.front() < kMinTime + 2 * every_ns ||
        times_ns.back() > kMaxTime - 2 * every_ns)
      return;
    std::int64_t from_ns = plan_.grid.window_of(times_ns.front()).from_ns;
    if (fills() && from_ns != window_ns_) return;
    std::size_t begin = 0, length = 1;  // as many as the one before has the next one, mostly
    while (made_.size() < kRowsMax) {
      const std::int64_t end_ns = from_ns + every_ns;
      std::size_t end = begin + length;
      const bool is_alike =
          end < numbers.size() && times_ns[end - 1] < end_ns && times_ns[end] >= end_ns;
      if (!is_alike) end = begin + numbers.from(begin).count_within(from_ns, end_ns - 1);
      if (end == numbers.size()) return;  // it may go on
      ends_.push_back(static_cast<std::uint32_t>(end));
      made_.times_ns.push_back(from_ns);
      length = end - begin;
      begin = end;
      from_ns = end_ns;
      if (times_ns[begin] < end_ns + every_ns) continue;
      if (fills()) return;
      from_ns = plan_.grid.window_of(times_ns[begin]).from_ns;
    }
  }

  void note_last(bool has_values) {
    has_last_ = has_values;
    last_bits_.resize(functions_.size());
    for (std::size_t i = 0; i < functions_.size(); ++i)
      last_bits_[i] = made_.columns[i].bits.back();
  }

  const NumberRowsPlan plan_;
  const std::size_t column_;
  const bool is_descending_;
  const std::unique_ptr<WindowFeed> feed_;
  Spending& spending_;
  std::vector<Made> functions_;
  bool takes_sums_ = true;  // all of them
  NumberRows made_;
  std::size_t next_ = 0;                  // of them
  std::size_t readings_ = 0;              // what was read for them
  std::vector<std::uint64_t> last_bits_;  // of the last window that had a value or lacked one
  bool has_last_ = false;
  bool has_begun_ = false;
  std::int64_t window_ns_ = 0;  // where there is fill(): the next one
  std::vector<std::uint32_t> ends_;
  std::vector<Sample> samples_;
};

}  // namespace

std::unique_ptr<PointSource> make_number_rows(NumberRowsPlan plan,
                                              const std::vector<const Call*>& calls,
                                              std::unique_ptr<WindowFeed> feed,
                                              Spending& spending) {
  return std::make_unique<WindowRows>(std::move(plan), calls, std::move(feed), spending);
}

}  // namespace edgecase::influxql
