#include "columnar/table.h"

#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "daemon/columnar/parquet_reader.h"

namespace edgecase::columnar {
namespace {

template <typename T>
std::vector<T> random_values(std::mt19937_64& random, std::uint64_t most) {
  std::vector<T> values(random() % 700);
  for (T& each : values) {
    // Runs, so that both forms of the hybrid come.
    const bool repeats = &each != values.data() && random() % 3 != 0;
    each = repeats ? *(&each - 1) : static_cast<T>(most == 0 ? 0 : random() % most);
  }
  return values;
}

}  // namespace

TEST_CASE("encodings: the hybrid of runs and packed bits comes back") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    const unsigned width = static_cast<unsigned>(random() % 33);
    CAPTURE(width);
    const auto values = random_values<std::uint32_t>(random, std::uint64_t{1} << width);
    const unsigned needed = width_of((std::uint64_t{1} << width) - 1);
    std::string packed;
    append_hybrid(values, needed, packed);
    CHECK(read_hybrid(packed, needed, values.size()) == values);
  }
}

TEST_CASE("encodings: differences come back, at the ends of 64 bits too") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kGreatest = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<std::int64_t>> all = {
      {}, {5}, {kLeast, kGreatest, kLeast, 0, -1}, std::vector<std::int64_t>(1000, 7)};
  for (int i = 0; i < 100; ++i)
    all.push_back(random_values<std::int64_t>(random, i % 2 == 0 ? 0 : kGreatest));
  for (const auto& values : all) {
    std::string packed;
    append_delta(values, packed);
    CHECK(read_delta(packed) == values);
  }
  std::vector<std::int64_t> regular;
  for (std::int64_t i = 0; i < 65'536; ++i) regular.push_back(i * 1'000'000'000);
  std::string packed;
  append_delta(regular, packed);
  CHECK(packed.size() < 6'000);
}

TEST_CASE("encodings: zigzag and varints keep what is near zero short") {
  CHECK(zigzag(0) == 0);
  CHECK(zigzag(-1) == 1);
  CHECK(zigzag(1) == 2);
  CHECK(zigzag(std::numeric_limits<std::int64_t>::min()) == UINT64_MAX);
  std::string out;
  append_varint(127, out);
  append_varint(300, out);
  CHECK(out == "\x7f\xac\x02");
}

}  // namespace edgecase::columnar
