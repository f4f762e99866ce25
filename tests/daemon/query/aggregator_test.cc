#include "query/aggregator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "edgecase/machine.h"

using namespace edgecase;
using query::Aggregator;
using wire::Aggregate;
using wire::Value;
using wire::ValueType;

namespace {

constexpr std::int64_t kIntMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kIntMax = std::numeric_limits<std::int64_t>::max();
constexpr double kLargest = std::numeric_limits<double>::max();

// The aggregate of `values`, and the same fed newest first, which must agree.
std::optional<Value> aggregate(Aggregate what, std::vector<Value> values) {
  Aggregator forward(what, false);
  Aggregator reverse(what, true);
  for (const Value& value : values) forward.add(value);
  for (auto value = values.rbegin(); value != values.rend(); ++value) reverse.add(*value);
  Value a, b;
  const bool has_result = forward.result(a);
  CHECK(reverse.result(b) == has_result);
  if (!has_result) return std::nullopt;
  CHECK(a.type == b.type);
  if (a.type == ValueType::Int64) CHECK(a.int64 == b.int64);
  if (a.type == ValueType::Float64) CHECK(a.float64 == doctest::Approx(b.float64));
  if (a.type == ValueType::Text) CHECK(a.text == b.text);
  a.text = {};  // dies with the aggregator
  a.content_type = {};
  return a;
}

double number(Aggregate what, const std::vector<Value>& values) {
  const auto result = aggregate(what, values);
  REQUIRE(result.has_value());
  REQUIRE(result->type == ValueType::Float64);
  return result->float64;
}

std::vector<Value> floats(const std::vector<double>& numbers) {
  std::vector<Value> values;
  for (const double n : numbers) values.push_back(Value::of_float64(n));
  return values;
}

std::vector<Value> ints(const std::vector<std::int64_t>& numbers) {
  std::vector<Value> values;
  for (const std::int64_t n : numbers) values.push_back(Value::of_int64(n));
  return values;
}

}  // namespace

TEST_CASE("aggregate: count counts everything") {
  const auto result = aggregate(Aggregate::Count, {Value::of_float64(1), Value::of_text("x"),
                                                   Value::of_bytes("y", ""), Value::of_bool(true)});
  REQUIRE(result.has_value());
  CHECK(result->int64 == 4);
  CHECK_FALSE(aggregate(Aggregate::Count, {}).has_value());
}

TEST_CASE("aggregate: first and last keep type and text") {
  for (const bool newest_first : {false, true}) {
    Aggregator first(Aggregate::First, newest_first);
    Aggregator last(Aggregate::Last, newest_first);
    std::string early = "early", late = "late";
    std::vector<Value> values = {Value::of_text(early), Value::of_int64(2),
                                 Value::of_bytes(late, "a/b")};
    if (newest_first) std::swap(values.front(), values.back());
    for (const Value& value : values) {
      first.add(value);
      last.add(value);
    }
    early = late = "gone";  // nothing is borrowed
    Value value;
    REQUIRE(first.result(value));
    CHECK(value.type == ValueType::Text);
    CHECK(value.text == "early");
    REQUIRE(last.result(value));
    CHECK(value.type == ValueType::Bytes);
    CHECK(value.text == "late");
    CHECK(value.content_type == "a/b");
  }
}

TEST_CASE("aggregate: min and max keep the type, and compare across types exactly") {
  auto result = aggregate(Aggregate::Min, ints({3, -5, 7}));
  CHECK(result->type == ValueType::Int64);
  CHECK(result->int64 == -5);
  result = aggregate(Aggregate::Max, {Value::of_bool(false), Value::of_bool(true)});
  CHECK(result->type == ValueType::Bool);
  CHECK(result->boolean);
  result = aggregate(Aggregate::Max, {Value::of_int64(2), Value::of_float64(2.5)});
  CHECK(result->float64 == 2.5);
  // 2^53 + 1 is no double.
  result = aggregate(Aggregate::Max, {Value::of_int64(9'007'199'254'740'993),
                                      Value::of_float64(9'007'199'254'740'992.0)});
  CHECK(result->type == ValueType::Int64);
  result = aggregate(Aggregate::Min, {Value::of_text("a"), Value::of_float64(4)});
  CHECK(result->float64 == 4);
  CHECK_FALSE(aggregate(Aggregate::Min, {Value::of_text("a")}).has_value());
}

TEST_CASE("aggregate: numbers compare by their mathematical value") {
  struct Case {
    Value a, b;
    int want;
  };
  for (const Case& c : {
           Case{Value::of_int64(1), Value::of_float64(1.0), 0},
           Case{Value::of_int64(1), Value::of_float64(1.5), -1},
           Case{Value::of_int64(-1), Value::of_float64(-1.5), 1},
           Case{Value::of_int64(kIntMax), Value::of_float64(9223372036854775808.0), -1},
           Case{Value::of_int64(kIntMin), Value::of_float64(-9223372036854775808.0), 0},
           Case{Value::of_int64(kIntMin), Value::of_float64(-1e300), 1},
           Case{Value::of_int64(kIntMax), Value::of_float64(1e300), -1},
           Case{Value::of_bool(true), Value::of_float64(0.5), 1},
           Case{Value::of_bool(true), Value::of_int64(1), 0},
           Case{Value::of_float64(-0.0), Value::of_float64(0.0), 0},
       }) {
    CHECK(query::compare_numbers(c.a, c.b) == c.want);
    CHECK(query::compare_numbers(c.b, c.a) == -c.want);
  }
}

TEST_CASE("aggregate: sums of ints are exact, and become floats where they must") {
  auto result = aggregate(Aggregate::Sum, ints({kIntMax - 1, 1}));
  CHECK(result->type == ValueType::Int64);
  CHECK(result->int64 == kIntMax);
  result = aggregate(Aggregate::Sum, {Value::of_bool(true), Value::of_bool(true),
                                      Value::of_int64(5), Value::of_text("x")});
  CHECK(result->int64 == 7);
  CHECK(number(Aggregate::Sum, ints({kIntMax, kIntMax})) == doctest::Approx(1.8446744073709552e19));
  CHECK(number(Aggregate::Sum, ints({kIntMin, kIntMin, kIntMin})) ==
        doctest::Approx(-2.7670116110564327e19));
  CHECK(number(Aggregate::Sum, {Value::of_int64(1), Value::of_float64(0.5)}) == 1.5);
  CHECK_FALSE(aggregate(Aggregate::Sum, {Value::of_text("x")}).has_value());
}

TEST_CASE("aggregate: means do not lose what is small") {
  CHECK(number(Aggregate::Mean, floats({1, 2, 4})) == doctest::Approx(7.0 / 3));
  CHECK(number(Aggregate::Mean, ints({1, 2})) == 1.5);
  CHECK(number(Aggregate::Mean, {Value::of_bool(true), Value::of_bool(false)}) == 0.5);
  CHECK(number(Aggregate::Mean, floats({1e16, 1, -1e16})) == doctest::Approx(1.0 / 3));
  std::vector<Value> tenths(1'000'000, Value::of_float64(0.1));
  CHECK(number(Aggregate::Mean, tenths) == 0.1);
}

TEST_CASE("aggregate: results never leave the range of a double") {
  CHECK(number(Aggregate::Mean, floats({kLargest, kLargest, kLargest})) == kLargest);
  CHECK(number(Aggregate::Mean, floats({kLargest, kLargest, -kLargest, -kLargest})) == 0);
  CHECK(number(Aggregate::Mean, floats({kLargest, kLargest, 0, 0})) ==
        doctest::Approx(kLargest / 2));
  CHECK(number(Aggregate::Sum, floats({kLargest, kLargest})) == kLargest);
  CHECK(number(Aggregate::Sum, floats({-kLargest, -kLargest})) == -kLargest);
  CHECK(std::isfinite(number(Aggregate::Stddev, floats({kLargest, -kLargest}))));
  CHECK(std::isfinite(number(Aggregate::P50, floats({kLargest, -kLargest}))));
}

TEST_CASE("aggregate: stddev is the sample's") {
  CHECK(number(Aggregate::Stddev, floats({2, 4, 4, 4, 5, 5, 7, 9})) ==
        doctest::Approx(2.138089935299395));
  CHECK(number(Aggregate::Stddev, ints({1, 1})) == 0);
  CHECK(number(Aggregate::Stddev, floats({1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16})) ==
        doctest::Approx(5.477225575051661));
  CHECK_FALSE(aggregate(Aggregate::Stddev, floats({1})).has_value());
  CHECK(number(Aggregate::Stddev, floats({1e300, 3e300})) == doctest::Approx(std::sqrt(2) * 1e300));
  CHECK(number(Aggregate::Stddev, floats({kLargest, 0, 1, -kLargest})) ==
        doctest::Approx(kLargest * std::sqrt(2.0 / 3)));
  CHECK(number(Aggregate::Stddev, floats({kLargest, -kLargest})) == kLargest);
  Aggregator cleared(Aggregate::Stddev, false);
  cleared.add(Value::of_float64(kLargest));
  cleared.clear();
  for (const Value& value : floats({1, 3})) cleared.add(value);
  Value result;
  REQUIRE(cleared.result(result));
  CHECK(result.float64 == doctest::Approx(std::sqrt(2.0)));
}

TEST_CASE("aggregate: percentiles") {
  std::vector<Value> hundred;
  for (int i = 0; i <= 100; ++i) hundred.push_back(Value::of_int64(i));
  CHECK(number(Aggregate::P50, hundred) == 50);
  CHECK(number(Aggregate::P95, hundred) == 95);
  CHECK(number(Aggregate::P99, hundred) == 99);
  CHECK_FALSE(aggregate(Aggregate::P50, {Value::of_text("x")}).has_value());
}

TEST_CASE("aggregate: begins anew after clear") {
  for (int i = 0; i <= static_cast<int>(Aggregate::P99); ++i) {
    Aggregator aggregator(static_cast<Aggregate>(i), false);
    for (const double n : {100.0, 200.0}) aggregator.add(Value::of_float64(n));
    aggregator.clear();
    Value value;
    CHECK_FALSE(aggregator.result(value));
    aggregator.add(Value::of_float64(1));
    aggregator.add(Value::of_float64(1));
    REQUIRE(aggregator.result(value));
    if (value.type == ValueType::Float64) CHECK(value.float64 <= 2);
  }
}

TEST_CASE("aggregate: many numbers at once come to what they come to one by one") {
  SeededRandom random(20261129);
  const double doubles[] = {0.0,    -0.0,     21.5,      -3.25,  1e300,
                            -1e300, kLargest, -kLargest, 5e-324, 0.1};
  const std::int64_t whole[] = {0, 1, -1, kIntMax, kIntMin, 42, std::int64_t{1} << 53};
  for (int round = 0; round < 2000; ++round) {
    const auto what = static_cast<Aggregate>(random.below(10));
    const bool newest_first = random.below(2) == 0;
    CAPTURE(round);
    CAPTURE(static_cast<int>(what));
    Aggregator one_by_one(what, newest_first);
    Aggregator at_once(what, newest_first);
    for (std::uint64_t pieces = random.below(5); pieces > 0; --pieces) {
      std::vector<std::int64_t> times;
      std::vector<std::uint64_t> bits;
      const bool is_float = random.below(3) != 0;
      const bool is_wild = random.below(4) == 0;
      for (std::uint64_t n = random.below(40); n > 0; --n) {
        times.push_back(static_cast<std::int64_t>(times.size()));
        const double tame = static_cast<double>(random.below(1000)) / 10;
        if (is_float) {
          bits.push_back(std::bit_cast<std::uint64_t>(is_wild ? doubles[random.below(10)] : tame));
        } else {
          bits.push_back(is_wild ? static_cast<std::uint64_t>(whole[random.below(7)])
                                 : random.below(100));
        }
      }
      const wire::Numbers numbers{times, bits, is_float};
      at_once.add(numbers);
      for (std::size_t i = 0; i < numbers.size(); ++i) one_by_one.add(numbers.value(i));
      if (random.below(4) == 0) {
        at_once.add(Value::of_bool(true));
        one_by_one.add(Value::of_bool(true));
      }
    }
    Value a, b;
    const bool has_result = one_by_one.result(a);
    REQUIRE(at_once.result(b) == has_result);
    if (!has_result) continue;
    REQUIRE(a.type == b.type);
    CHECK(a.int64 == b.int64);
    CHECK(std::bit_cast<std::uint64_t>(a.float64) == std::bit_cast<std::uint64_t>(b.float64));
  }
}

TEST_CASE("numbers: those of a window are counted from the first on, in either order") {
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < 100; ++i) times.push_back(i * 10);
  const std::vector<std::uint64_t> bits(times.size());
  for (const bool newest_first : {false, true}) {
    if (newest_first) std::reverse(times.begin(), times.end());
    for (std::size_t from = 0; from < times.size(); ++from) {
      const wire::Numbers numbers = wire::Numbers{times, bits, true}.from(from);
      for (std::size_t count = 1; count <= numbers.size(); ++count) {
        const std::int64_t a = numbers.times_ns[0], b = numbers.times_ns[count - 1];
        REQUIRE(numbers.count_within(std::min(a, b) - 5, std::max(a, b) + 5) == count);
      }
    }
  }
}

TEST_CASE("aggregate: a summary counts as all the readings that it is of") {
  const auto bits = [](double number) { return std::bit_cast<std::uint64_t>(number); };
  NumberSummary summary;
  summary.type = NumberType::Float;
  summary.count = 3;  // 2, 1e16, 1
  summary.first = bits(2);
  summary.last = summary.min = bits(1);
  summary.max = summary.sum = bits(1e16);
  summary.sum_low = 3;
  NumberSummary whole = summary;
  whole.type = NumberType::Integer;
  whole.first = 2;
  whole.last = whole.min = 1;
  whole.max = static_cast<std::uint64_t>(kIntMax) - 4;
  whole.sum = static_cast<std::uint64_t>(kIntMax) - 1;
  struct Case {
    Aggregate what;
    Value floats, ints;
  };
  for (const Case& c : {Case{Aggregate::Count, Value::of_int64(4), Value::of_int64(4)},
                        Case{Aggregate::First, Value::of_float64(2), Value::of_int64(2)},
                        Case{Aggregate::Last, Value::of_int64(1), Value::of_int64(1)},
                        Case{Aggregate::Min, Value::of_float64(1), Value::of_int64(1)},
                        Case{Aggregate::Max, Value::of_float64(1e16), Value::of_int64(kIntMax - 4)},
                        Case{Aggregate::Sum, Value::of_float64(1e16 + 4), Value::of_int64(kIntMax)},
                        Case{Aggregate::Mean, Value::of_float64((1e16 + 4) / 4),
                             Value::of_float64(static_cast<double>(kIntMax) / 4)}}) {
    for (const bool is_float : {true, false}) {
      CAPTURE(static_cast<int>(c.what));
      CAPTURE(is_float);
      Aggregator aggregator(c.what, false);
      REQUIRE(aggregator.takes_summaries());
      aggregator.add(is_float ? summary : whole);
      aggregator.add(Value::of_int64(1));
      Value got;
      REQUIRE(aggregator.result(got));
      const Value& want = is_float ? c.floats : c.ints;
      CHECK(got.type == want.type);
      CHECK(query::compare_numbers(got, want) == 0);
    }
    CHECK(Aggregator(c.what, true).takes_summaries());
  }
  for (const Aggregate what : {Aggregate::Stddev, Aggregate::P50, Aggregate::P95, Aggregate::P99})
    CHECK_FALSE(Aggregator(what, false).takes_summaries());
}

TEST_CASE("aggregate: a sum of ints that left an int on its way is one again") {
  const auto result = aggregate(Aggregate::Sum, ints({kIntMax, kIntMax, -kIntMax, -1}));
  CHECK(result->type == ValueType::Int64);
  CHECK(result->int64 == kIntMax - 1);
}

// No claim, but a figure of tests/bench/README.md: readings a second, in windows of ten.
TEST_CASE("aggregate: how fast" * doctest::skip(true)) {
  constexpr std::size_t kReadings = 1'000'000, kWindow = 10;
  std::vector<std::int64_t> times_ns(kReadings);
  std::vector<std::uint64_t> bits(kReadings);
  for (std::size_t i = 0; i < kReadings; ++i) {
    times_ns[i] = static_cast<std::int64_t>(i) * 1'000'000'000;
    bits[i] = std::bit_cast<std::uint64_t>(20 + static_cast<double>(i * 7919 % 10'007) / 1'000);
  }
  const wire::Numbers numbers{times_ns, bits, true};
  for (const Aggregate what : {Aggregate::Mean, Aggregate::Max, Aggregate::Count}) {
    Aggregator aggregator(what, false);
    double best_s = 1e9, total = 0;
    for (int round = 0; round < 20; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (std::size_t at = 0; at < kReadings; at += kWindow) {
        aggregator.clear();
        aggregator.add(numbers.from(at).first(kWindow));
        Value value;
        if (aggregator.result(value)) total += value.float64;
      }
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      best_s = std::min(best_s, took.count());
    }
    MESSAGE(wire::aggregate_name(what), ": ", kReadings / best_s / 1e6, " M readings/s; ", total);
  }
}
