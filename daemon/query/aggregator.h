// One aggregate over the readings of one window. One thread; values are not kept beyond add(),
// except one for min, max, first and last.
//
//   count             every reading; an int
//   first, last       by time, of any type, which they keep
//   min, max          of numbers and bools, whose type they keep; 2 and 2.0 are equal, the earlier
//                     one met stays
//   sum               of numbers and bools (true is 1). An int if all were ints or bools and it
//                     fits, else a float
//   mean              of numbers and bools, by compensated summation: the error does not grow with
//                     their number
//   stddev            sample standard deviation (Welford); without a result for fewer than two
//   p50 p95 p99       order_statistics.cc
//   minmax            Extremes: no result here
//
// Text and bytes are passed over by all but count, first and last. Floats that would leave the
// range of a double end at its largest finite number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "edgecase/iterator.h"
#include "query/series_scan.h"
#include "query/tier_windows.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::query {

// Order statistics of a stream of numbers in bounded memory: a percentile; the least and the
// greatest. One thread.
//
// A percentile: up to kExactValuesMax numbers it is exact: the value at rank q * (n - 1),
// interpolated linearly between its two neighbours, as spreadsheets and numpy do by default. Beyond
// that the numbers are counted in buckets of equal relative width, and the answer is off by at most
// 1/256 (0.4 %) of itself; when values spread so far that they would need more than
// kSketchBucketsMax buckets, these are made twice as wide as often as needed, up to an error of
// 1/32.

inline constexpr std::size_t kExactValuesMax = 262'144;  // 2 MiB
inline constexpr std::size_t kSketchBucketsMax = 65'536;

class Percentile {
 public:
  void clear();
  void add(double value);  // finite
  std::uint64_t count() const { return count_; }
  // `quantile` in [0, 1]; count() > 0. May reorder what is held, nothing else.
  double value(double quantile);

 private:
  void add_to_sketch(double value);
  void widen_buckets();
  double value_at_rank(std::uint64_t rank) const;

  std::uint64_t count_ = 0;
  std::vector<double> exact_;
  std::unordered_map<std::uint64_t, std::uint64_t> buckets_;  // bucket to how many
  unsigned bucket_shift_ = 0;  // low bits of a number's order that a bucket ignores; 0: exact
};

// Extremes are the least and the greatest number of a window, with their times: of a line that is
// drawn through all readings they are what shows. WindowCursor keeps them.
struct TimedValue {
  std::int64_t time_ns = 0;
  wire::Value value;  // no text, no bytes
};

// Numbers and bools, compared as min and max compare them; of equal ones the earlier one met
// counts.
class Extremes {
 public:
  void clear() { count_ = 0; }
  // Text and bytes are passed over.
  void add(std::int64_t time_ns, const wire::Value& value);
  void add(const wire::Numbers& numbers);
  // In the order in which they were met: none, one where all are equal, or two.
  std::span<const TimedValue> result();

 private:
  // Two of `count` values, and which of them they are.
  struct Met {
    TimedValue least, greatest;
    std::uint64_t least_at = 0, greatest_at = 0, count = 0;
  };
  void take(const Met& met);

  std::uint64_t count_ = 0;
  TimedValue least_, greatest_;
  std::uint64_t least_at_ = 0, greatest_at_ = 0;  // as which they were met
  TimedValue result_[2];
};

// Sum of ints (exact) and floats (compensated).
class NumberSum {
  __extension__ using Int128 = __int128;  // 2^64 ints fit

 public:
  void clear() { *this = NumberSum(); }
  void add_int64(std::int64_t number) {
    ++count_;
    int_sum_ += number;
  }
  void add_float64(double number) {
    ++count_;
    only_ints_ = false;
    add_compensated(number);
  }
  // The same of many: with the same result.
  void add(const wire::Numbers& numbers);
  void add(const NumberSummary& summary);
  void add(const WindowSums::Window& window) {
    count_ += window.count;
    only_ints_ = false;
    add_compensated(window.sum);
    add_compensated(window.sum_low);
  }
  // Adds `count` numbers by their sum.
  void add(std::uint64_t count, const wire::Value& sum);
  std::uint64_t count() const { return count_; }
  wire::Value sum() const;
  double mean() const;  // count() > 0

 private:
  bool add_plainly(const wire::Numbers& numbers);
  void rescale(double number);
  double total() const;
  // Neumaier's variant of Kahan summation: what `next`, the sum of the two, has lost of them. No
  // finite number where one of the three is none.
  static double lost_of(double sum, double added, double next) {
    const double sum_size = sum < 0 ? -sum : sum;
    const double added_size = added < 0 ? -added : added;
    return sum_size >= added_size ? (sum - next) + added : (added - next) + sum;
  }
  void add_compensated(double number) {
    const double scaled = number * scale_;
    const double next = sum_ + scaled;
    const double lost = lost_of(sum_, scaled, next);
    if (!(lost - lost == 0)) return rescale(number);  // left the range of a double
    sum_ = next;
    compensation_ += lost;
  }

  std::uint64_t count_ = 0;
  Int128 int_sum_ = 0;
  bool only_ints_ = true;
  double sum_ = 0;
  double compensation_ = 0;
  double scale_ = 1;  // what floats are multiplied with before they are added
};

class Aggregator {
 public:
  // `newest_first`: the order in which add() will see readings.
  Aggregator(wire::Aggregate aggregate, bool newest_first)
      : aggregate_(aggregate), newest_first_(newest_first) {}

  void clear();
  // Whether add() looks at its argument; otherwise add_without_value() will do.
  bool needs_values() const { return aggregate_ != wire::Aggregate::Count; }
  void add_without_value() { ++readings_; }
  void add(const wire::Value& value);
  // As many calls of add(), with the same result to the last bit.
  void add(const wire::Numbers& numbers);
  // Whether what is known of many readings that are all numbers will do in their place.
  bool takes_summaries() const;
  // As add() of each of them, for sum and mean within 2^-52 of the result and (n * 2^-52)^2 of the
  // sum of n magnitudes. Only when takes_summaries().
  void add(const NumberSummary& summary);
  // As add() of its readings, for sum and mean within 2^-53 of the sum of each window. For the
  // same aggregates.
  void add(const TierWindow& window);
  // Whether add() will keep the reading as it is; one with a large text is added like this then.
  bool keeps_next() const;
  void add(std::unique_ptr<LargeText> large);
  // The result's large text, where it is one.
  LargeText* large_text() const { return kept_large_.get(); }
  // False when there is no result. Views of `value` are valid until clear() or add().
  bool result(wire::Value& value);

 private:
  void add_number(double number);
  void add_least(const wire::Numbers& numbers);
  void keep(const wire::Value& value);

  wire::Aggregate aggregate_;
  bool newest_first_;
  std::uint64_t readings_ = 0;
  NumberSum sum_;
  double mean_ = 0;  // stddev: Welford's running mean and sum of squares
  double squares_ = 0;
  double shrink_ = 1;  // what numbers are multiplied with
  std::uint64_t numbers_ = 0;
  Percentile percentile_;
  bool has_kept_ = false;
  wire::Value kept_;
  std::string kept_text_, kept_content_type_;
  std::unique_ptr<LargeText> kept_large_;
};

// Numbers and bools by their exact mathematical value, across types. Both must be one.
int compare_numbers(const wire::Value& a, const wire::Value& b);

}  // namespace edgecase::query
