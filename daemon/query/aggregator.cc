#include "query/aggregator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace edgecase::query {
namespace {

using wire::Aggregate;
using wire::Value;
using wire::ValueType;

// Numbers beyond this are shrunk, with those before them, so that squares of them have room.
constexpr double kSquaresFit = 0x1p480;
constexpr double kShrink = 0x1p-600;

double finite(double number) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  if (std::isnan(number)) return 0;
  return std::clamp(number, -kLargest, kLargest);
}

bool is_number(const Value& value) {
  return value.type != ValueType::Text && value.type != ValueType::Bytes;
}

std::int64_t as_int64(const Value& value) {
  return value.type == ValueType::Bool ? (value.boolean ? 1 : 0) : value.int64;
}

double as_double(const Value& value) {
  return value.type == ValueType::Float64 ? value.float64 : static_cast<double>(as_int64(value));
}

int compare_int_to_double(std::int64_t a, double b) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (b >= kTwoTo63) return -1;
  if (b < -kTwoTo63) return 1;
  const double whole = std::trunc(b);
  const auto b_int = static_cast<std::int64_t>(whole);
  if (a != b_int) return a < b_int ? -1 : 1;
  if (b == whole) return 0;
  return b > whole ? -1 : 1;
}

double quantile_of(Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::P95: return 0.95;
    case Aggregate::P99: return 0.99;
    default: return 0.5;
  }
}

}  // namespace

int compare_numbers(const Value& a, const Value& b) {
  const bool a_float = a.type == ValueType::Float64;
  const bool b_float = b.type == ValueType::Float64;
  if (a_float && b_float) return a.float64 < b.float64 ? -1 : a.float64 > b.float64 ? 1 : 0;
  if (a_float) return -compare_int_to_double(as_int64(b), a.float64);
  if (b_float) return compare_int_to_double(as_int64(a), b.float64);
  const std::int64_t x = as_int64(a);
  const std::int64_t y = as_int64(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

// Numbers near the largest double: from here on everything is added 2^-64 as large, which loses
// nothing that such a sum could show.
void NumberSum::rescale(double number) {
  constexpr double kDown = 0x1p-64;
  if (scale_ != 1) return;  // 2^64 numbers would be needed
  scale_ = kDown;
  sum_ *= kDown;
  compensation_ *= kDown;
  add_compensated(number);
}

// Knuth's TwoSum, which loses the same as lost_of() says, without a branch; a sum that left the
// range of a double it does not take.
bool NumberSum::add_plainly(const wire::Numbers& numbers) {
  if (scale_ != 1) return false;
  double sum = sum_;
  double compensation = compensation_;
  for (const std::uint64_t bits : numbers.bits) {
    const double number = std::bit_cast<double>(bits);
    const double next = sum + number;
    const double of_number = next - sum;
    compensation += (sum - (next - of_number)) + (number - of_number);
    sum = next;
  }
  if (!(compensation - compensation == 0)) return false;
  sum_ = sum;
  compensation_ = compensation;
  return true;
}

void NumberSum::add(const wire::Numbers& numbers) {
  if (!numbers.is_float) {
    for (const std::uint64_t bits : numbers.bits) add_int64(static_cast<std::int64_t>(bits));
    return;
  }
  if (numbers.empty()) return;
  count_ += numbers.size();
  only_ints_ = false;
  if (add_plainly(numbers)) return;
  // In registers, which members would not be.
  double sum = sum_;
  double compensation = compensation_;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double scaled = numbers.float64(i) * scale_;
    const double next = sum + scaled;
    const double lost = lost_of(sum, scaled, next);
    if (lost - lost == 0) {
      sum = next;
      compensation += lost;
      continue;
    }
    sum_ = sum;
    compensation_ = compensation;
    add_compensated(numbers.float64(i));
    sum = sum_;
    compensation = compensation_;
  }
  sum_ = sum;
  compensation_ = compensation;
}

void NumberSum::add(const NumberSummary& summary) {
  if (summary.type == NumberType::Integer) {
    add_int64(static_cast<std::int64_t>(summary.sum));
    count_ += summary.count - 1;
    return;
  }
  count_ += summary.count;
  only_ints_ = false;
  add_compensated(std::bit_cast<double>(summary.sum));
  add_compensated(summary.sum_low);
}

void NumberSum::add(std::uint64_t count, const Value& sum) {
  if (count == 0) return;
  if (sum.type == ValueType::Float64) {
    add_float64(sum.float64);
  } else {
    add_int64(as_int64(sum));
  }
  count_ += count - 1;
}

double NumberSum::total() const {
  const double floats = sum_ + compensation_;
  // 128 bits become a double slowly.
  return int_sum_ == 0 ? floats : floats + static_cast<double>(int_sum_) * scale_;
}

Value NumberSum::sum() const {
  const bool fits = int_sum_ >= std::numeric_limits<std::int64_t>::min() &&
                    int_sum_ <= std::numeric_limits<std::int64_t>::max();
  if (only_ints_ && fits) return Value::of_int64(static_cast<std::int64_t>(int_sum_));
  return Value::of_float64(finite(total() / scale_));
}

double NumberSum::mean() const {
  return finite(total() / static_cast<double>(count_) / scale_);
}

void Aggregator::clear() {
  readings_ = 0;
  sum_.clear();
  mean_ = 0;
  squares_ = 0;
  shrink_ = 1;
  numbers_ = 0;
  if (percentile_.count() > 0) percentile_.clear();
  has_kept_ = false;
  kept_large_.reset();
}

void Aggregator::keep(const Value& value) {
  kept_ = value;
  has_kept_ = true;
  kept_large_.reset();
  if (is_number(value)) return;
  kept_text_.assign(value.text);
  kept_content_type_.assign(value.content_type);
  kept_.text = kept_text_;
  kept_.content_type = kept_content_type_;
}

bool Aggregator::keeps_next() const {
  if (aggregate_ == Aggregate::First) return !has_kept_ || newest_first_;
  return aggregate_ == Aggregate::Last && (!has_kept_ || !newest_first_);
}

void Aggregator::add(std::unique_ptr<LargeText> large) {
  ++readings_;
  kept_ = large->kind();
  has_kept_ = true;
  kept_large_ = std::move(large);
}

void Aggregator::add(const Value& value) {
  ++readings_;
  switch (aggregate_) {
    case Aggregate::Count:
    case Aggregate::MinMax: return;
    case Aggregate::First:
    case Aggregate::Last:
      if (keeps_next()) keep(value);
      return;
    case Aggregate::Min:
      if (is_number(value) && (!has_kept_ || compare_numbers(value, kept_) < 0)) keep(value);
      return;
    case Aggregate::Max:
      if (is_number(value) && (!has_kept_ || compare_numbers(value, kept_) > 0)) keep(value);
      return;
    case Aggregate::Mean:
    case Aggregate::Sum:
      if (value.type == ValueType::Float64) {
        sum_.add_float64(value.float64);
      } else if (is_number(value)) {
        sum_.add_int64(as_int64(value));
      }
      return;
    case Aggregate::Stddev:
    case Aggregate::P50:
    case Aggregate::P95:
    case Aggregate::P99:
      if (is_number(value)) add_number(as_double(value));
      return;
  }
}

// The first of the least (Min) or greatest, as add() would have left it.
void Aggregator::add_least(const wire::Numbers& numbers) {
  const bool is_min = aggregate_ == Aggregate::Min;
  const auto best_of = [&](const auto& at) {
    std::size_t best = 0;
    auto number = at(0);
    for (std::size_t i = 1; i < numbers.size(); ++i) {
      const auto other = at(i);
      if (is_min ? !(other < number) : !(other > number)) continue;
      number = other;
      best = i;
    }
    return best;
  };
  const Value value =
      numbers.value(numbers.is_float ? best_of([&](std::size_t i) { return numbers.float64(i); })
                                     : best_of([&](std::size_t i) { return numbers.int64(i); }));
  const int order = has_kept_ ? compare_numbers(value, kept_) : 0;
  if (!has_kept_ || (is_min ? order < 0 : order > 0)) keep(value);
}

void Aggregator::add(const wire::Numbers& numbers) {
  if (numbers.empty()) return;
  readings_ += numbers.size();
  switch (aggregate_) {
    case Aggregate::Count:
    case Aggregate::MinMax: return;
    case Aggregate::First:
    case Aggregate::Last: {
      const bool keeps_newer = (aggregate_ == Aggregate::Last) != newest_first_;
      if (keeps_newer || !has_kept_) keep(numbers.value(keeps_newer ? numbers.size() - 1 : 0));
      return;
    }
    case Aggregate::Min:
    case Aggregate::Max: return add_least(numbers);
    case Aggregate::Mean:
    case Aggregate::Sum: return sum_.add(numbers);
    case Aggregate::Stddev:
    case Aggregate::P50:
    case Aggregate::P95:
    case Aggregate::P99:
      for (std::size_t i = 0; i < numbers.size(); ++i)
        add_number(numbers.is_float ? numbers.float64(i) : static_cast<double>(numbers.int64(i)));
      return;
  }
}

void Aggregator::add_number(double number) {
  if (aggregate_ != Aggregate::Stddev) return percentile_.add(number);
  if (std::fabs(number) > kSquaresFit && shrink_ == 1) {
    shrink_ = kShrink;
    mean_ *= shrink_;
    squares_ = squares_ * shrink_ * shrink_;  // shrink_ squared is no double
  }
  number *= shrink_;
  ++numbers_;
  const double delta = number - mean_;
  mean_ += delta / static_cast<double>(numbers_);
  squares_ += delta * (number - mean_);
}

bool Aggregator::takes_summaries() const {
  switch (aggregate_) {
    case Aggregate::Count:
    case Aggregate::First:
    case Aggregate::Last:
    case Aggregate::Min:
    case Aggregate::Max:
    case Aggregate::Sum:
    case Aggregate::Mean: return true;
    default: return false;
  }
}

void Aggregator::add(const TierWindow& window) {
  const auto add_known = [this](const std::optional<Value>& value) {
    if (value) add(*value);
  };
  switch (aggregate_) {
    case Aggregate::Mean:
    case Aggregate::Sum:
      if (window.sum) sum_.add(window.numbers, *window.sum);
      break;
    case Aggregate::Min: add_known(window.min); break;
    case Aggregate::Max: add_known(window.max); break;
    case Aggregate::First: add_known(window.first); break;
    case Aggregate::Last: add_known(window.last); break;
    default: readings_ += window.count; break;
  }
}

void Aggregator::add(const NumberSummary& summary) {
  const auto value_of = [&](std::uint64_t bits) {
    return summary.type == NumberType::Integer ? Value::of_int64(static_cast<std::int64_t>(bits))
                                               : Value::of_float64(std::bit_cast<double>(bits));
  };
  switch (aggregate_) {
    case Aggregate::Mean:
    case Aggregate::Sum: sum_.add(summary); break;
    case Aggregate::Min: add(value_of(summary.min)); break;
    case Aggregate::Max: add(value_of(summary.max)); break;
    case Aggregate::First: add(value_of(summary.first)); break;
    case Aggregate::Last: add(value_of(summary.last)); break;
    default: readings_ += summary.count; break;
  }
}

bool Aggregator::result(Value& value) {
  switch (aggregate_) {
    case Aggregate::Count:
      value = Value::of_int64(static_cast<std::int64_t>(readings_));
      return readings_ > 0;
    case Aggregate::First:
    case Aggregate::Last:
    case Aggregate::Min:
    case Aggregate::Max: value = kept_; return has_kept_;
    case Aggregate::Sum:
      if (sum_.count() > 0) value = sum_.sum();
      return sum_.count() > 0;
    case Aggregate::Mean:
      if (sum_.count() > 0) value = Value::of_float64(sum_.mean());
      return sum_.count() > 0;
    case Aggregate::Stddev:
      if (numbers_ < 2) return false;
      value = Value::of_float64(
          finite(std::sqrt(squares_ / static_cast<double>(numbers_ - 1)) / shrink_));
      return true;
    case Aggregate::P50:
    case Aggregate::P95:
    case Aggregate::P99:
      if (percentile_.count() == 0) return false;
      value = Value::of_float64(percentile_.value(quantile_of(aggregate_)));
      return true;
    case Aggregate::MinMax: return false;
  }
  return false;
}

}  // namespace edgecase::query
