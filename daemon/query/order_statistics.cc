#include "query/aggregator.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace edgecase::query {
namespace {

// Sign, exponent and 7 bits of the fraction: 128 buckets for each power of two.
constexpr unsigned kFinestShift = 52 - 7;
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

// An integer for every double, in the same order.
std::uint64_t order_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

double from_order(std::uint64_t order) {
  return std::bit_cast<double>((order & kSignBit) != 0 ? order & ~kSignBit : ~order);
}

double between(double low, double high, double fraction) {
  if (fraction == 0 || low == high) return low;
  const double distance = high - low;
  // Numbers at both ends of the range are further apart than a double can say.
  if (!std::isfinite(distance)) return low * (1 - fraction) + high * fraction;
  return low + distance * fraction;
}

}  // namespace

void Percentile::clear() {
  count_ = 0;
  exact_.clear();
  buckets_.clear();
  bucket_shift_ = 0;
}

void Percentile::add(double value) {
  ++count_;
  if (bucket_shift_ != 0) return add_to_sketch(value);
  if (exact_.size() < kExactValuesMax) {
    exact_.push_back(value);
    return;
  }
  bucket_shift_ = kFinestShift;
  for (const double earlier : exact_) add_to_sketch(earlier);
  exact_ = {};
  add_to_sketch(value);
}

void Percentile::add_to_sketch(double value) {
  ++buckets_[order_of(value) >> bucket_shift_];
  while (buckets_.size() > kSketchBucketsMax) widen_buckets();
}

void Percentile::widen_buckets() {
  std::unordered_map<std::uint64_t, std::uint64_t> wider;
  for (const auto& [bucket, count] : buckets_) wider[bucket >> 1] += count;
  buckets_.swap(wider);
  ++bucket_shift_;
}

double Percentile::value_at_rank(std::uint64_t rank) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sorted(buckets_.begin(), buckets_.end());
  std::sort(sorted.begin(), sorted.end());
  std::uint64_t below = 0;
  for (const auto& [bucket, count] : sorted) {
    below += count;
    if (rank >= below) continue;
    const std::uint64_t low = bucket << bucket_shift_;
    const std::uint64_t high = low | ((std::uint64_t{1} << bucket_shift_) - 1);
    const double middle = from_order(low) / 2 + from_order(high) / 2;
    return std::isfinite(middle) ? middle : from_order(low);
  }
  return 0;
}

double Percentile::value(double quantile) {
  const double rank = quantile * static_cast<double>(count_ - 1);
  const auto low = static_cast<std::uint64_t>(rank);
  if (bucket_shift_ != 0) return value_at_rank(low);
  const auto at = exact_.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(exact_.begin(), at, exact_.end());
  const double lower = *at;
  if (low + 1 == count_) return lower;
  return between(lower, *std::min_element(at + 1, exact_.end()), rank - static_cast<double>(low));
}

namespace {

struct Places {
  std::size_t least = 0, greatest = 0;
};

template <typename At>
Places places_of(std::size_t size, const At& at) {
  Places places;
  auto least = at(0);
  auto greatest = least;
  for (std::size_t i = 1; i < size; ++i) {
    const auto number = at(i);
    if (number < least) {
      least = number;
      places.least = i;
    } else if (number > greatest) {
      greatest = number;
      places.greatest = i;
    }
  }
  return places;
}

}  // namespace

void Extremes::add(std::int64_t time_ns, const wire::Value& value) {
  if (value.type == wire::ValueType::Text || value.type == wire::ValueType::Bytes) return;
  const TimedValue timed{time_ns, value};
  take({timed, timed, 0, 0, 1});
}

void Extremes::add(const wire::Numbers& numbers) {
  if (numbers.empty()) return;
  const Places places =
      numbers.is_float
          ? places_of(numbers.size(), [&](std::size_t i) { return numbers.float64(i); })
          : places_of(numbers.size(), [&](std::size_t i) { return numbers.int64(i); });
  const auto timed = [&](std::size_t i) {
    return TimedValue{numbers.times_ns[i], numbers.value(i)};
  };
  take(
      {timed(places.least), timed(places.greatest), places.least, places.greatest, numbers.size()});
}

void Extremes::take(const Met& met) {
  if (count_ == 0 || compare_numbers(met.least.value, least_.value) < 0) {
    least_ = met.least;
    least_at_ = count_ + met.least_at;
  }
  if (count_ == 0 || compare_numbers(met.greatest.value, greatest_.value) > 0) {
    greatest_ = met.greatest;
    greatest_at_ = count_ + met.greatest_at;
  }
  count_ += met.count;
}

std::span<const TimedValue> Extremes::result() {
  if (count_ == 0) return {};
  const bool is_least_first = least_at_ <= greatest_at_;
  result_[0] = is_least_first ? least_ : greatest_;
  result_[1] = is_least_first ? greatest_ : least_;
  return std::span(result_).first(least_at_ == greatest_at_ ? 1 : 2);
}

}  // namespace edgecase::query
