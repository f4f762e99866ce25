// One percentile of a stream of numbers in bounded memory. One thread.
//
// Up to kExactValuesMax numbers it is exact: the value at rank q * (n - 1), interpolated linearly
// between its two neighbours, as spreadsheets and numpy do by default. Beyond that the numbers are
// counted in buckets of equal relative width, and the answer is off by at most 1/256 (0.4 %) of
// itself; when values spread so far that they would need more than kSketchBucketsMax buckets, these
// are made twice as wide as often as needed, up to an error of 1/32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

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

}  // namespace edgecase::query
