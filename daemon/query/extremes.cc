#include "query/extremes.h"

#include "query/aggregator.h"

namespace edgecase::query {
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
