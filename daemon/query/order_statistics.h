// Order statistics of a stream of numbers in bounded memory: a percentile; the least and the
// greatest. One thread.
//
// A percentile: up to kExactValuesMax numbers it is exact: the value at rank q * (n - 1),
// interpolated linearly between its two neighbours, as spreadsheets and numpy do by default. Beyond
// that the numbers are counted in buckets of equal relative width, and the answer is off by at most
// 1/256 (0.4 %) of itself; when values spread so far that they would need more than
// kSketchBucketsMax buckets, these are made twice as wide as often as needed, up to an error of
// 1/32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "wire/reading.h"

namespace edgecase::query {

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

}  // namespace edgecase::query
