#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "query/aggregator.h"

using namespace edgecase;
using query::Percentile;

namespace {

// The definition.
double by_definition(const std::vector<double>& sorted, double quantile) {
  const double rank = quantile * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  if (low + 1 == sorted.size()) return sorted[low];
  return sorted[low] + (sorted[low + 1] - sorted[low]) * (rank - static_cast<double>(low));
}

}  // namespace

TEST_CASE("percentile: small sets, by hand") {
  struct Case {
    std::vector<double> values;
    double quantile;
    double want;
  };
  for (const Case& c : {
           Case{{5}, 0.5, 5},
           Case{{5}, 0.99, 5},
           Case{{1, 3}, 0.5, 2},
           Case{{3, 1, 2}, 0.5, 2},
           Case{{4, 1, 3, 2}, 0.5, 2.5},
           Case{{1, 2, 3, 4, 5}, 0.95, 4.8},
           Case{{-5, -1}, 0.5, -3},
           Case{{2, 2, 2, 9}, 0.5, 2},
           Case{{1, 2, 3}, 0, 1},
           Case{{1, 2, 3}, 1, 3},
       }) {
    Percentile percentile;
    for (const double value : c.values) percentile.add(value);
    CHECK(percentile.value(c.quantile) == doctest::Approx(c.want).epsilon(1e-12));
  }
}

TEST_CASE("percentile: numbers at both ends of the range") {
  Percentile percentile;
  percentile.add(std::numeric_limits<double>::lowest());
  percentile.add(std::numeric_limits<double>::max());
  CHECK(std::isfinite(percentile.value(0.5)));
  CHECK(percentile.value(0) == std::numeric_limits<double>::lowest());
}

TEST_CASE("percentile: exact up to its limit, within its stated error beyond") {
  const std::uint64_t seed = 99;
  INFO("seed " << seed);
  for (const std::size_t count :
       {query::kExactValuesMax, query::kExactValuesMax + 1, query::kExactValuesMax * 2}) {
    SeededRandom random(seed);
    Percentile percentile;
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
      // Some four decades, both signs.
      const double magnitude = std::pow(10.0, static_cast<double>(random.below(4'000)) / 1'000.0);
      values.push_back(random.below(4) == 0 ? -magnitude : magnitude);
      percentile.add(values.back());
    }
    CHECK(percentile.count() == count);
    std::sort(values.begin(), values.end());
    const double allowed = count <= query::kExactValuesMax ? 1e-12 : 1.0 / 256;
    for (const double quantile : {0.01, 0.5, 0.95, 0.99}) {
      CAPTURE(quantile);
      const double want = by_definition(values, quantile);
      // One rank further is the next bucket's at worst.
      CHECK(std::abs(percentile.value(quantile) - want) <= std::abs(want) * allowed * 1.01 + 1e-12);
    }
  }
}

TEST_CASE("percentile: values from all over a double's range stay within the widest error") {
  const std::uint64_t seed = 4;
  INFO("seed " << seed);
  SeededRandom random(seed);
  Percentile percentile;
  std::vector<double> values;
  while (values.size() < query::kExactValuesMax + 200'000) {
    const double value = std::bit_cast<double>(random.next());
    if (!std::isnormal(value)) continue;
    values.push_back(value);
    percentile.add(value);
  }
  std::sort(values.begin(), values.end());
  for (const double quantile : {0.05, 0.95, 0.99}) {
    const double want =
        values[static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1))];
    CHECK(std::abs(percentile.value(quantile) - want) <= std::abs(want) / 31);
  }
}

TEST_CASE("percentile: begins anew after clear") {
  Percentile percentile;
  for (std::size_t i = 0; i < query::kExactValuesMax + 10; ++i) percentile.add(1e6);
  percentile.clear();
  CHECK(percentile.count() == 0);
  percentile.add(3);
  CHECK(percentile.value(0.5) == 3);
}

using namespace edgecase;
using query::Extremes;
using wire::Value;

TEST_CASE("extremes: the least and the greatest come in the order of their times") {
  Extremes extremes;
  CHECK(extremes.result().empty());
  extremes.add(1, Value::of_text("passed over"));
  CHECK(extremes.result().empty());
  extremes.add(2, Value::of_float64(5));
  REQUIRE(extremes.result().size() == 1);
  CHECK(extremes.result()[0].time_ns == 2);
  extremes.add(3, Value::of_int64(9));
  extremes.add(4, Value::of_bool(false));
  extremes.add(5, Value::of_float64(9));
  const auto result = extremes.result();
  REQUIRE(result.size() == 2);
  CHECK(result[0].time_ns == 3);
  CHECK(result[0].value.int64 == 9);
  CHECK(result[1].time_ns == 4);
  CHECK(result[1].value.type == wire::ValueType::Bool);
  extremes.clear();
  CHECK(extremes.result().empty());
}

TEST_CASE("extremes: many at once are what they are one by one") {
  SeededRandom random(9);
  for (int round = 0; round < 1000; ++round) {
    Extremes one_by_one, at_once;
    std::int64_t time_ns = 0;
    for (std::uint64_t pieces = random.below(4); pieces > 0; --pieces) {
      std::vector<std::int64_t> times;
      std::vector<std::uint64_t> bits;
      const bool is_float = random.below(2) == 0;
      for (std::uint64_t n = random.below(20); n > 0; --n) {
        times.push_back(time_ns++);
        const auto number = static_cast<std::int64_t>(random.below(7)) - 3;
        bits.push_back(is_float ? std::bit_cast<std::uint64_t>(static_cast<double>(number))
                                : static_cast<std::uint64_t>(number));
      }
      const wire::Numbers numbers{times, bits, is_float};
      at_once.add(numbers);
      for (std::size_t i = 0; i < numbers.size(); ++i) one_by_one.add(times[i], numbers.value(i));
    }
    const auto want = one_by_one.result();
    const auto got = at_once.result();
    REQUIRE(want.size() == got.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      CHECK(want[i].time_ns == got[i].time_ns);
      CHECK(query::compare_numbers(want[i].value, got[i].value) == 0);
    }
  }
}
