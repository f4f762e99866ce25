#include "query/percentile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "edgecase/random.h"

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
