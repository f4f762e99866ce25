#include "bench/histogram.h"

#include <doctest/doctest.h>

#include <memory>

using namespace edgecase::cli::bench;

TEST_CASE("histogram: percentiles are within two percent at any scale") {
  for (const std::uint64_t scale : {1ull, 1'000ull, 1'000'000ull, 1'000'000'000'000ull}) {
    CAPTURE(scale);
    const auto histogram = std::make_unique<Histogram>();
    for (std::uint64_t i = 1; i <= 1000; ++i) histogram->add(i * scale);
    for (const double share : {0.5, 0.95, 0.99, 0.999}) {
      const double want = share * 1000 * static_cast<double>(scale);
      const auto got = static_cast<double>(histogram->percentile_ns(share));
      CHECK(got >= want * 0.98);
      CHECK(got <= want * 1.02 + 1);
    }
    CHECK(histogram->max_ns() == 1000 * scale);
    CHECK(histogram->percentile_ns(1.0) == histogram->max_ns());
  }
}

TEST_CASE("histogram: the largest number has a bucket, an empty one has zeros") {
  const auto histogram = std::make_unique<Histogram>();
  CHECK(histogram->percentile_ns(0.5) == 0);
  histogram->add(UINT64_MAX);
  histogram->add(0);
  CHECK(histogram->max_ns() == UINT64_MAX);
  CHECK(histogram->count() == 2);
}

TEST_CASE("histogram: merged ones count as one") {
  const auto all = std::make_unique<Histogram>();
  const auto part = std::make_unique<Histogram>();
  for (std::uint64_t i = 0; i < 100; ++i) (i % 2 ? *all : *part).add(i);
  all->merge(*part);
  CHECK(all->count() == 100);
  CHECK(all->max_ns() == 99);
}

TEST_CASE("median: the middle, the lower of two") {
  CHECK(median({}) == 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2);
}
