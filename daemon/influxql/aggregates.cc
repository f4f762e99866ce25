// count, sum, mean and whatever else gives a value that need not be one of the window's.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "influxql/function_streams.h"
#include "influxql/points.h"
#include "query/aggregator.h"

namespace edgecase::influxql {
namespace {

using Kind = Cell::Kind;

Sample sample_of(Cell value) {
  return {kNoTime, std::move(value), {}};
}

class Count : public Reducer {
 public:
  Status add(const Cell&, const Point&) override {
    ++count_;
    return ok();
  }
  bool takes_numbers() const override { return true; }
  Status add_numbers(const wire::Numbers& numbers) override {
    count_ += static_cast<std::int64_t>(numbers.size());
    return ok();
  }
  Status reduce(const wire::Numbers&, std::span<const std::uint32_t> ends,
                NumberRows::Column& made) override {
    std::uint32_t begin = 0;
    for (const std::uint32_t end : ends) made.add(std::uint64_t{end - std::exchange(begin, end)});
    return ok();
  }
  bool takes_summary(const NumberSummary&) const override { return true; }
  bool takes_sums() const override { return true; }
  void reduce_sums(std::span<const WindowSums::Window> sums,
                   NumberRows::Column& made) const override {
    for (const WindowSums::Window& each : sums) made.add(std::uint64_t{each.count});
  }
  void add_summary(const NumberSummary& summary) override {
    count_ += static_cast<std::int64_t>(summary.count);
  }
  Status finish(std::vector<Sample>& made) override {
    made.push_back(sample_of(integer_cell(std::exchange(count_, 0))));
    return ok();
  }

 private:
  std::int64_t count_ = 0;
};

// Adds floats up as /api/v1/query does, and integers as InfluxDB does, which lets them overflow.
class Sum : public Reducer {
 public:
  explicit Sum(const Call& call)
      : is_integer_(call.taken == Kind::Integer), is_mean_(call.function == Function::Mean) {}

  Status add(const Cell& value, const Point&) override {
    ++count_;
    if (is_integer_)
      integer_ = wrapped_sum(integer_, value.integer);
    else
      sum_.add_float64(value.number);
    return ok();
  }
  bool takes_numbers() const override { return true; }
  Status add_numbers(const wire::Numbers& numbers) override {
    count_ += static_cast<std::int64_t>(numbers.size());
    if (is_integer_) {
      for (std::size_t i = 0; i < numbers.size(); ++i)
        integer_ = wrapped_sum(integer_, numbers.int64(i));
    } else {
      sum_.add(numbers);
    }
    return ok();
  }
  Status reduce(const wire::Numbers& numbers, std::span<const std::uint32_t> ends,
                NumberRows::Column& made) override {
    if (is_integer_) return Reducer::reduce(numbers, ends, made);
    std::size_t begin = 0;
    for (const std::uint32_t end : ends) {
      query::NumberSum sum;
      sum.add(numbers.from(begin).first(end - begin));
      made.add(std::bit_cast<std::uint64_t>(is_mean_ ? sum.mean() : sum.sum().float64));
      begin = end;
    }
    return ok();
  }
  bool takes_summary(const NumberSummary&) const override { return true; }
  bool takes_sums() const override { return !is_integer_; }
  void reduce_sums(std::span<const WindowSums::Window> sums,
                   NumberRows::Column& made) const override {
    for (const WindowSums::Window& each : sums) {
      query::NumberSum sum;
      sum.add(each);
      made.add(std::bit_cast<std::uint64_t>(is_mean_ ? sum.mean() : sum.sum().float64));
    }
  }
  void add_summary(const NumberSummary& summary) override {
    count_ += static_cast<std::int64_t>(summary.count);
    if (is_integer_) {
      integer_ = wrapped_sum(integer_, static_cast<std::int64_t>(summary.sum));
    } else {
      sum_.add(summary);
    }
  }
  Status finish(std::vector<Sample>& made) override {
    if (!is_integer_) {
      made.push_back(sample_of(float_cell(is_mean_ ? sum_.mean() : sum_.sum().float64)));
    } else if (is_mean_) {
      made.push_back(
          sample_of(float_cell(static_cast<double>(integer_) / static_cast<double>(count_))));
    } else {
      made.push_back(sample_of(integer_cell(integer_)));
    }
    integer_ = count_ = 0;
    sum_.clear();
    return ok();
  }

 private:
  const bool is_integer_, is_mean_;
  std::int64_t integer_ = 0, count_ = 0;
  query::NumberSum sum_;
};

template <typename At>
auto bounds_of(const At& at, const wire::Numbers& numbers) {
  auto low = at(0);
  auto high = low;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    low = std::min(low, at(i));
    high = std::max(high, at(i));
  }
  return std::pair(low, high);
}

class Spread : public Reducer {
 public:
  Status add(const Cell& value, const Point&) override {
    add(value, value);
    return ok();
  }
  bool takes_numbers() const override { return true; }
  Status add_numbers(const wire::Numbers& numbers) override {
    Cell least, most;
    if (numbers.is_float) {
      const auto [low, high] =
          bounds_of([&](std::size_t i) { return numbers.float64(i); }, numbers);
      least = float_cell(low);
      most = float_cell(high);
    } else {
      const auto [low, high] = bounds_of([&](std::size_t i) { return numbers.int64(i); }, numbers);
      least = integer_cell(low);
      most = integer_cell(high);
    }
    add(least, most);
    return ok();
  }
  bool takes_summary(const NumberSummary&) const override { return true; }
  void add_summary(const NumberSummary& summary) override {
    add(number_cell(summary, summary.min), number_cell(summary, summary.max));
  }
  Status finish(std::vector<Sample>& made) override {
    made.push_back(sample_of(least_.kind == Kind::Integer
                                 ? integer_cell(wrapped_difference(most_.integer, least_.integer))
                                 : float_cell(most_.number - least_.number)));
    has_any_ = false;
    return ok();
  }

 private:
  void add(const Cell& least, const Cell& most) {
    if (!has_any_ || is_less(least, least_)) least_ = least;
    if (!has_any_ || is_less(most_, most)) most_ = most;
    has_any_ = true;
  }

  bool has_any_ = false;
  Cell least_, most_;
};

// By Welford's sums: one pass, and as exact as two. One value has no deviation.
class Stddev : public Reducer {
 public:
  Status add(const Cell& value, const Point&) override {
    add(as_number(value));
    return ok();
  }
  bool takes_numbers() const override { return true; }
  Status add_numbers(const wire::Numbers& numbers) override {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      add(numbers.is_float ? numbers.float64(i) : static_cast<double>(numbers.int64(i)));
    return ok();
  }
  Status finish(std::vector<Sample>& made) override {
    made.push_back(sample_of(float_cell(count_ < 2 ? std::numeric_limits<double>::quiet_NaN()
                                                   : std::sqrt(squares_ / (count_ - 1)))));
    count_ = mean_ = squares_ = 0;
    return ok();
  }

 private:
  void add(double number) {
    ++count_;
    const double distance = number - mean_;
    mean_ += distance / count_;
    squares_ += distance * (number - mean_);
  }

  double count_ = 0, mean_ = 0, squares_ = 0;
};

template <typename T>
class Median : public Reducer {
 public:
  explicit Median(Spending& spending) : held_(spending) {}

  Status add(const Cell& value, const Point&) override {
    EC_TRY(held_.hold(sizeof(T)));
    if constexpr (std::is_integral_v<T>)
      values_.push_back(value.integer);
    else
      values_.push_back(value.number);
    return ok();
  }
  bool takes_numbers() const override { return true; }
  Status add_numbers(const wire::Numbers& numbers) override {
    EC_TRY(held_.hold(sizeof(T) * numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if constexpr (std::is_integral_v<T>)
        values_.push_back(numbers.int64(i));
      else
        values_.push_back(numbers.float64(i));
    }
    return ok();
  }
  Status finish(std::vector<Sample>& made) override {
    const auto middle = values_.begin() + static_cast<std::ptrdiff_t>(values_.size() / 2);
    std::nth_element(values_.begin(), middle, values_.end());
    double median = static_cast<double>(*middle);
    if (values_.size() % 2 == 0) {
      const T low = *std::max_element(values_.begin(), middle);
      if constexpr (std::is_integral_v<T>)
        median =
            static_cast<double>(low) + static_cast<double>(wrapped_difference(*middle, low)) / 2;
      else
        median = low + (*middle - low) / 2;
    }
    made.push_back(sample_of(float_cell(median)));
    values_.clear();
    held_.release_all();
    return ok();
  }

 private:
  HeldBytes held_;
  std::vector<T> values_;
};

struct CellLess {
  bool operator()(const Cell& a, const Cell& b) const { return is_less(a, b); }
};

// The values that there are, each once: of mode(), distinct() and count(distinct()).
class Values : public Reducer {
 public:
  Values(Function function, Spending& spending) : function_(function), held_(spending) {}

  Status add(const Cell& value, const Point& point) override {
    const auto [at, is_new] = seen_.try_emplace(value);
    // A node of the tree: three pointers and a colour beside it.
    if (is_new)
      EC_TRY(held_.hold(sizeof(Cell) + sizeof(Seen) + 4 * sizeof(void*) + value.text.size()));
    Seen& seen = at->second;
    if (is_new) seen.first_ns = point.time_ns;
    seen.last_ns = point.time_ns;
    ++seen.count;
    return ok();
  }

  Status finish(std::vector<Sample>& made) override {
    switch (function_) {
      case Function::CountDistinct:
        made.push_back(sample_of(integer_cell(static_cast<std::int64_t>(seen_.size()))));
        break;
      case Function::Mode: made.push_back(sample_of(mode())); break;
      default:
        for (const auto& [value, seen] : seen_) made.push_back({seen.first_ns, value, {}});
        std::stable_sort(made.begin(), made.end(),
                         [](const Sample& a, const Sample& b) { return a.time_ns < b.time_ns; });
    }
    seen_.clear();
    held_.release_all();
    return ok();
  }

 private:
  struct Seen {
    std::int64_t first_ns = 0, last_ns = 0;
    std::uint64_t count = 0;
  };

  // The most frequent; of several the least, unless another begins before that one ends. Of truth
  // values true.
  Cell mode() const {
    auto best = seen_.begin();
    for (auto at = std::next(best); at != seen_.end(); ++at) {
      const bool is_bool = at->first.kind == Kind::Bool;
      const bool is_earlier =
          is_bool || (at->second.count > 1 && at->second.first_ns <= best->second.last_ns);
      if (at->second.count > best->second.count ||
          (at->second.count == best->second.count && is_earlier))
        best = at;
    }
    return best->first;
  }

  const Function function_;
  HeldBytes held_;
  std::map<Cell, Seen, CellLess> seen_;
};

}  // namespace

Status Reducer::reduce(const wire::Numbers& numbers, std::span<const std::uint32_t> ends,
                       NumberRows::Column& made) {
  std::vector<Sample> samples;
  std::size_t begin = 0;
  for (const std::uint32_t end : ends) {
    EC_TRY(add_numbers(numbers.from(begin).first(end - begin)));
    samples.clear();
    EC_TRY(finish(samples));
    made.add(samples.front().value);
    begin = end;
  }
  return ok();
}

std::unique_ptr<Reducer> make_aggregate(const Call& call, Spending& spending) {
  switch (call.function) {
    case Function::Count: return std::make_unique<Count>();
    case Function::Sum:
    case Function::Mean: return std::make_unique<Sum>(call);
    case Function::Spread: return std::make_unique<Spread>();
    case Function::Stddev: return std::make_unique<Stddev>();
    case Function::Median:
      if (call.taken == Kind::Integer) return std::make_unique<Median<std::int64_t>>(spending);
      return std::make_unique<Median<double>>(spending);
    default: return std::make_unique<Values>(call.function, spending);
  }
}

}  // namespace edgecase::influxql
