#include "query/extremes.h"

#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <vector>

#include "edgecase/random.h"
#include "query/aggregator.h"

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
