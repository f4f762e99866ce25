#include "influxql/function_streams.h"

#include <utility>

#include "influxql/points.h"

namespace edgecase::influxql {
namespace {

using Kind = Cell::Kind;

// Between two times; wraps where they are further from each other than an integer holds.
double distance(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(wrapped_difference(to_ns, from_ns));
}

void set(std::int64_t time_ns, Cell value, Sample& made) {
  made.time_ns = time_ns;
  made.value = std::move(value);
  made.beside.clear();
}

// A value, of which one counts: integers or floats.
struct Numbers {
  std::int64_t integer = 0;
  double number = 0;
};

// derivative and difference. Of several points of one time the first counts.
class Slope : public Transform {
 public:
  Slope(const Call& call, bool is_descending)
      : unit_ns_(call.function == Function::Derivative ? call.unit_ns : 0),
        is_non_negative_(call.is_non_negative),
        is_integer_(call.taken == Kind::Integer),
        is_descending_(is_descending) {}

  Result<bool> add(const Sample& sample, Sample& made) override {
    if (has_last_ && last_ns_ == sample.time_ns) return false;
    const bool had_last = std::exchange(has_last_, true);
    const std::int64_t before_ns = std::exchange(last_ns_, sample.time_ns);
    const Numbers before = std::exchange(last_, {sample.value.integer, sample.value.number});
    if (!had_last) return false;
    Cell value = is_integer_ ? integer_cell(wrapped_difference(last_.integer, before.integer))
                             : float_cell(last_.number - before.number);
    if (is_non_negative_ && as_number(value) < 0) return false;
    if (unit_ns_ != 0) {
      const double elapsed_ns = is_descending_ ? distance(sample.time_ns, before_ns)
                                               : distance(before_ns, sample.time_ns);
      value = float_cell(as_number(value) / (elapsed_ns / static_cast<double>(unit_ns_)));
    }
    set(sample.time_ns, std::move(value), made);
    return true;
  }

 private:
  const std::int64_t unit_ns_;  // 0: the difference itself
  const bool is_non_negative_, is_integer_, is_descending_;
  bool has_last_ = false;
  std::int64_t last_ns_ = 0;
  Numbers last_;
};

class Elapsed : public Transform {
 public:
  explicit Elapsed(std::int64_t unit_ns) : unit_ns_(unit_ns) {}

  Result<bool> add(const Sample& sample, Sample& made) override {
    const std::int64_t before_ns = std::exchange(last_ns_, sample.time_ns);
    if (!std::exchange(has_last_, true)) return false;
    set(sample.time_ns, integer_cell(wrapped_difference(sample.time_ns, before_ns) / unit_ns_),
        made);
    return true;
  }

 private:
  const std::int64_t unit_ns_;
  bool has_last_ = false;
  std::int64_t last_ns_ = 0;
};

class CumulativeSum : public Transform {
 public:
  Result<bool> add(const Sample& sample, Sample& made) override {
    if (sum_.kind == Kind::Null) {
      sum_ = sample.value;
    } else {
      sum_.integer = wrapped_sum(sum_.integer, sample.value.integer);
      sum_.number += sample.value.number;
    }
    set(sample.time_ns, sum_, made);
    return true;
  }

 private:
  Cell sum_;
};

// Added up anew as values come and go, as InfluxDB does: the same rounding.
class MovingAverage : public Transform {
 public:
  MovingAverage(const Call& call, Spending& spending)
      : count_(static_cast<std::size_t>(call.count)),
        is_integer_(call.taken == Kind::Integer),
        held_(spending) {}

  Result<bool> add(const Sample& sample, Sample& made) override {
    const Numbers kept{sample.value.integer, sample.value.number};
    if (kept_.size() < count_) {
      EC_TRY(held_.hold(sizeof(Numbers)));
      kept_.push_back(kept);
    } else {
      sum_.integer = wrapped_difference(sum_.integer, kept_[next_].integer);
      sum_.number -= kept_[next_].number;
      kept_[next_] = kept;
    }
    sum_.integer = wrapped_sum(sum_.integer, kept.integer);
    sum_.number += kept.number;
    next_ = (next_ + 1) % count_;
    if (kept_.size() < count_) return false;
    const double sum = is_integer_ ? static_cast<double>(sum_.integer) : sum_.number;
    set(sample.time_ns, float_cell(sum / static_cast<double>(count_)), made);
    return true;
  }

 private:
  const std::size_t count_;
  const bool is_integer_;
  HeldBytes held_;
  std::vector<Numbers> kept_;
  std::size_t next_ = 0;
  Numbers sum_;
};

// The area below the line that joins the points; where it crosses from a window into another one it
// is cut there. Against the order of time the area is negative, as in InfluxDB.
class Integral : public Transform {
 public:
  Integral(const Call& call, const WindowGrid& grid, bool is_descending)
      : unit_ns_(static_cast<double>(call.unit_ns)),
        is_integer_(call.taken == Kind::Integer),
        grid_(grid),
        is_descending_(is_descending) {}

  Result<bool> add(const Sample& sample, Sample& made) override {
    const std::int64_t time_ns = sample.time_ns;
    double value = as_number(sample.value);
    bool is_made = false;
    if (!std::exchange(has_last_, true)) {
      enter_window(time_ns);
    } else if (last_ns_ != time_ns) {
      if (has_windows() && (is_descending_ ? time_ns <= end_ns_ : time_ns >= end_ns_)) {
        leave_window(time_ns, value);
        set(from_ns_, float_cell(std::exchange(sum_, 0)), made);
        enter_window(time_ns);
        is_made = true;
      }
      sum_ += area(time_ns, value);
    }
    last_ns_ = time_ns;
    last_ = as_number(sample.value);
    return is_made;
  }

  bool finish(Sample& made) override {
    if (!has_last_ || last_ns_ == from_ns_) return false;
    set(from_ns_, float_cell(sum_), made);
    return true;
  }

 private:
  // Integers have one even where nothing is cut: what is answered.
  bool has_windows() const { return is_integer_ || grid_.is_cut(); }

  void enter_window(std::int64_t time_ns) {
    if (!has_windows()) return;
    const Window window = grid_.window_of(time_ns);
    from_ns_ = is_descending_ ? window.end_ns : window.from_ns;
    end_ns_ = is_descending_ ? window.from_ns : window.end_ns;
    if (from_ns_ == kMinTime) from_ns_ = 0;
  }

  // From the last point to the window's end, where the line has a value of its own. Of integers
  // InfluxDB takes that value for the next point's as well, and the last point's for that at the
  // end; whoever compares finds the same here.
  void leave_window(std::int64_t time_ns, double& value) {
    if (last_ns_ == end_ns_) return;
    const double slope = (value - last_) / distance(last_ns_, time_ns);
    const double at_end = slope * distance(last_ns_, end_ns_) + last_;
    sum_ += area(end_ns_, at_end);
    last_ns_ = end_ns_;
    if (is_integer_)
      value = at_end;
    else
      last_ = at_end;
  }

  double area(std::int64_t time_ns, double value) const {
    return 0.5 * (value + last_) * (distance(last_ns_, time_ns) / unit_ns_);
  }

  const double unit_ns_;
  const bool is_integer_;
  const WindowGrid& grid_;
  const bool is_descending_;
  bool has_last_ = false;
  std::int64_t last_ns_ = 0;
  double last_ = 0;
  double sum_ = 0;
  std::int64_t from_ns_ = 0, end_ns_ = 0;
};

}  // namespace

bool Transform::finish(Sample&) {
  return false;
}

std::unique_ptr<Transform> make_transform(const Call& call, const WindowGrid& grid,
                                          bool is_descending, Spending& spending) {
  switch (call.function) {
    case Function::Elapsed: return std::make_unique<Elapsed>(call.unit_ns);
    case Function::CumulativeSum: return std::make_unique<CumulativeSum>();
    case Function::MovingAverage: return std::make_unique<MovingAverage>(call, spending);
    case Function::Integral: return std::make_unique<Integral>(call, grid, is_descending);
    default: return std::make_unique<Slope>(call, is_descending);
  }
}

}  // namespace edgecase::influxql
