#include "metadata/number_summary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::uint64_t bits(double number) {
  return std::bit_cast<std::uint64_t>(number);
}
double number(std::uint64_t of) {
  return std::bit_cast<double>(of);
}

// `count` numbers, the last of them replaced by `odd`.
Numbers doubles(double odd, std::size_t count = 100) {
  Numbers numbers(count, bits(1.5));
  numbers.back() = bits(odd);
  return numbers;
}
Numbers integers(std::initializer_list<std::int64_t> odd, std::size_t count = 100) {
  Numbers numbers(count, 0);
  std::size_t at = 0;
  for (const std::int64_t each : odd) numbers[at++] = static_cast<std::uint64_t>(each);
  return numbers;
}

Bytes summary_of_numbers(NumberType type, const Numbers& numbers) {
  Bytes bytes;
  append_number_summary(bytes, type, numbers);
  return bytes;
}

void check_doubles(const Numbers& numbers) {
  const Bytes bytes = summary_of_numbers(NumberType::Float, numbers);
  NumberSummary got;
  REQUIRE(parse_number_summary(bytes, got));
  double min = number(numbers.front());
  double max = min;
  for (const std::uint64_t each : numbers) {
    min = std::min(min, number(each));
    max = std::max(max, number(each));
  }
  CHECK(got.type == NumberType::Float);
  CHECK(got.min == bits(min));
  CHECK(got.max == bits(max));
  CHECK(got.first == numbers.front());
  CHECK(got.last == numbers.back());
}

TEST_CASE("a summary of doubles gives back each bit") {
  constexpr double kSubnormal = std::numeric_limits<double>::denorm_min();
  for (const double odd : {0.0, -0.0, 20.1, -20.1, 0.1 + 0.2, 1e300, kSubnormal, -kSubnormal,
                           9007199254740993.0, 1e-15, 123456789.123456}) {
    CAPTURE(odd);
    check_doubles(doubles(odd));
    check_doubles(Numbers(70, bits(odd)));
  }
}

TEST_CASE("a summary of integers is exact, beyond 2^53 too") {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  struct Case {
    Numbers numbers;
    std::int64_t min, max, sum;
  };
  for (const Case& c :
       {Case{integers({5, -7}), -7, 5, -2}, Case{integers({kMax}), 0, kMax, kMax},
        Case{integers({kMin}), kMin, 0, kMin}, Case{integers({kMax, kMin}), kMin, kMax, -1},
        Case{integers({(1ll << 53) + 1, 1ll << 53}), 0, (1ll << 53) + 1, (1ll << 54) + 1}}) {
    const Bytes bytes = summary_of_numbers(NumberType::Integer, c.numbers);
    NumberSummary got;
    REQUIRE(parse_number_summary(bytes, got));
    CHECK(got.type == NumberType::Integer);
    CHECK(static_cast<std::int64_t>(got.min) == c.min);
    CHECK(static_cast<std::int64_t>(got.max) == c.max);
    CHECK(static_cast<std::int64_t>(got.sum) == c.sum);
    CHECK(got.first == c.numbers.front());
    CHECK(got.last == c.numbers.back());
  }
}

TEST_CASE("there is no summary where it would not pay, or would not be right") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  Numbers both_zeros = doubles(0.0);
  both_zeros.front() = bits(-0.0);
  Numbers all_large(100, bits(std::numeric_limits<double>::max()));
  for (const Numbers& each : {doubles(kInfinity), doubles(-kInfinity), doubles(std::nan("")),
                              both_zeros, all_large, doubles(1, kSummaryEntriesMin - 1), Numbers()})
    CHECK(summary_of_numbers(NumberType::Float, each).empty());
  CHECK(summary_of_numbers(NumberType::Integer, integers({kMax, 1})).empty());
  CHECK_FALSE(summary_of_numbers(NumberType::Float, doubles(1, kSummaryEntriesMin)).empty());
}

TEST_CASE("the sum of doubles keeps what rounding would lose") {
  // 2^100 hides every one beside it, until it is taken away again.
  Numbers numbers;
  for (int i = 0; i < 300; ++i)
    for (const double each : {0x1p100, 1.0, -0x1p100}) numbers.push_back(bits(each));
  NumberSummary got;
  REQUIRE(parse_number_summary(summary_of_numbers(NumberType::Float, numbers), got));
  CHECK(number(got.sum) + got.sum_low == 300);

  // Multiples of 2^-30 below 2^20: their sum is exact in an int64.
  SeededRandom random(3);
  std::int64_t exact = 0;
  numbers.clear();
  for (int i = 0; i < 5000; ++i) {
    const auto units = static_cast<std::int64_t>(random.below(1ull << 50));
    exact += units;
    numbers.push_back(bits(static_cast<double>(units) * 0x1p-30));
  }
  REQUIRE(parse_number_summary(summary_of_numbers(NumberType::Float, numbers), got));
  const std::int64_t found = static_cast<std::int64_t>(number(got.sum) * 0x1p30) +
                             static_cast<std::int64_t>(got.sum_low * 0x1p30);
  CHECK(found == exact);
}

TEST_CASE("a one-decimal sensor's summary takes 25 bytes at most") {
  Numbers numbers;
  for (int i = 0; i < 650; ++i) numbers.push_back(bits(static_cast<double>(200 + i % 9) / 10));
  const Bytes bytes = summary_of_numbers(NumberType::Float, numbers);
  CHECK(bytes.size() <= 25);
  check_doubles(numbers);
}

TEST_CASE("a summary that is cut, longer or of another form is malformed") {
  const Bytes whole = summary_of_numbers(NumberType::Float, doubles(20.1));
  NumberSummary got;
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(parse_number_summary(ByteView(whole).substr(0, size), got));
  CHECK_FALSE(parse_number_summary(whole + '\0', got));
  for (const int form : {0x80, 0x40, 18, 63}) {
    Bytes other = whole;
    other[0] = static_cast<char>(form);
    CHECK_FALSE(parse_number_summary(other, got));
  }
  SeededRandom random(test::test_seed(11));
  for (int i = 0; i < 20'000; ++i) {
    Bytes noise;
    for (std::uint64_t n = random.below(60); n > 0; --n)
      noise.push_back(static_cast<char>(random.next()));
    if (!parse_number_summary(noise, got) || got.type != NumberType::Integer) continue;
    CHECK(static_cast<std::int64_t>(got.min) <= static_cast<std::int64_t>(got.first));
    CHECK(static_cast<std::int64_t>(got.last) <= static_cast<std::int64_t>(got.max));
  }
}

TEST_CASE("what is gathered has a summary only as numbers of one series and one class") {
  const auto gathered = [](const std::vector<std::pair<Bytes, Bytes>>& entries, bool deletes) {
    NumberGathering gathering;
    for (const auto& [key, value] : entries) gathering.add({key, 1, EntryKind::Put, value});
    if (deletes) gathering.add({make_full_key(1, "seriesz1234567"), 1, EntryKind::Delete, {}});
    Bytes bytes;
    gathering.append_to(bytes);
    return bytes;
  };
  const auto entry = [](char series, int i, char tag) {
    Bytes key = "series";
    key.push_back(series);
    for (int shift = 56; shift >= 0; shift -= 8)
      key.push_back(static_cast<char>(static_cast<std::uint64_t>(i) >> shift));
    Bytes value(1, tag);
    append_fixed64(value, static_cast<std::uint64_t>(i));
    return std::pair{make_full_key(1, key), value};
  };
  std::vector<std::pair<Bytes, Bytes>> entries;
  for (int i = 0; i < 80; ++i) entries.push_back(entry('a', i, kIntegerTag));
  CHECK_FALSE(gathered(entries, false).empty());
  CHECK(gathered(entries, true).empty());
  for (const auto& other : {entry('a', 81, kFloatTag), entry('b', 1, kIntegerTag),
                            std::pair{make_full_key(1, "short"), entry('a', 1, 1).second},
                            std::pair{entry('a', 82, 1).first, Bytes("text")}}) {
    entries.push_back(other);
    CHECK(gathered(entries, false).empty());
    entries.pop_back();
  }
}

}  // namespace
}  // namespace edgecase::engine
