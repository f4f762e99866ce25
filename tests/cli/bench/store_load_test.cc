#include "bench/loads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

using namespace edgecase;
using namespace edgecase::cli::bench;

namespace {

constexpr std::uint64_t kItems = 100'000;
constexpr std::uint64_t kDraws = 1'000'000;

std::vector<std::uint64_t> counts_of(const std::function<std::uint64_t()>& draw) {
  std::vector<std::uint64_t> counts(kItems);
  for (std::uint64_t i = 0; i < kDraws; ++i) ++counts.at(draw());
  return counts;
}

// Percent of the draws that met the first `items` of `counts`.
double share(const std::vector<std::uint64_t>& counts, std::size_t items) {
  const auto end = counts.begin() + static_cast<std::ptrdiff_t>(items);
  return 100.0 * static_cast<double>(std::accumulate(counts.begin(), end, std::uint64_t{0})) /
         static_cast<double>(kDraws);
}

void check_near(double measured, double expected) {
  CHECK(measured > expected * 0.98);
  CHECK(measured < expected * 1.02);
}

}  // namespace

// What YCSB's own generators drew of 100,000 items in a million draws.
TEST_CASE("ycsb: hot keys are as hot as in YCSB") {
  SeededRandom random(1);
  Zipfian zipfian(kItems);
  std::vector<std::uint64_t> counts = counts_of([&] { return zipfian.next(random); });
  std::sort(counts.begin(), counts.end(), std::greater<>());
  check_near(share(counts, 1), 7.85);
  check_near(share(counts, 10), 24.4);
  check_near(share(counts, kItems / 100), 61.4);

  ScrambledZipfian scrambled(kItems);
  counts = counts_of([&] { return scrambled.next(random); });
  CHECK(counts[0] < kDraws / 50);  // the hottest lie anywhere
  std::sort(counts.begin(), counts.end(), std::greater<>());
  check_near(share(counts, 1), 3.79);
  check_near(share(counts, 10), 11.8);
  check_near(share(counts, kItems / 100), 30.5);

  Latest latest(kItems);
  counts = counts_of([&] { return latest.next(random, kItems); });
  std::reverse(counts.begin(), counts.end());
  check_near(share(counts, 1), 7.8);
  check_near(share(counts, kItems / 100), 61.2);
}

TEST_CASE("ycsb: a zipfian that grows is the one that was so large from the start") {
  Zipfian grown(10);
  for (std::uint64_t items = 11; items <= 5'000; items += 7) grown.grow(items);
  grown.grow(5'000);
  Zipfian whole(5'000);
  SeededRandom one(2);
  SeededRandom other(2);
  for (int i = 0; i < 10'000; ++i) CHECK(grown.next(one) == whole.next(other));
  Zipfian single(1);
  CHECK(single.next(one) == 0);
}

TEST_CASE("ycsb: records count once all before them are written") {
  InsertSequence inserts(5);
  CHECK(inserts.take() == 5);
  CHECK(inserts.take() == 6);
  CHECK(inserts.take() == 7);
  inserts.written(7);
  inserts.written(6);
  CHECK(inserts.limit() == 5);
  inserts.written(5);
  CHECK(inserts.limit() == 8);
}

TEST_CASE("ycsb: its hash, as its first keys show it") {
  CHECK(ycsb_hash(0) == 6'284'781'860'667'377'211u);
  CHECK(ycsb_hash(1) == 8'517'097'267'634'966'620u);
  for (std::uint64_t i = 0; i < 1'000; ++i) CHECK((ycsb_hash(i) >> 63) == 0);
}
