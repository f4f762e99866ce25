#include "table/window_sums.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "edgecase/machine.h"
#include "support/test_seed.h"
#include "table/table_files.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kEvery = 60, kReadings = 540;

// `readings` one after the other, of one decimal.
NumberColumns columns_of(std::uint64_t first, std::uint64_t readings = kReadings) {
  NumberColumns columns;
  for (std::uint64_t i = 0; i < readings; ++i) {
    columns.ordinals.push_back(first + i);
    columns.bits.push_back(
        std::bit_cast<std::uint64_t>(static_cast<double>((first + i) * 31 % 997) / 10));
  }
  return columns;
}

WholeGroup group_of(std::uint64_t file, std::uint64_t offset, const NumberColumns& columns) {
  WholeGroup group;
  group.file_number = file;
  group.offset_bytes = offset;
  group.numbers.count = columns.size();
  group.numbers.first_ordinal = columns.ordinals.front();
  group.numbers.last_ordinal = columns.ordinals.back();
  return group;
}

void check_same(const WindowSums& got, const WindowSums& want) {
  REQUIRE(got.windows.size() == want.windows.size());
  CHECK(got.every == want.every);
  CHECK(got.phase == want.phase);
  CHECK(got.first_ordinal == want.first_ordinal);
  CHECK(got.last_ordinal == want.last_ordinal);
  for (std::size_t i = 0; i < want.windows.size(); ++i) {
    CAPTURE(i);
    const WindowSums::Window &a = got.windows[i], &b = want.windows[i];
    REQUIRE(a.number == b.number);
    REQUIRE(a.count == b.count);
    REQUIRE(std::bit_cast<std::uint64_t>(a.sum) == std::bit_cast<std::uint64_t>(b.sum));
    REQUIRE(std::bit_cast<std::uint64_t>(a.sum_low) == std::bit_cast<std::uint64_t>(b.sum_low));
  }
}

TEST_CASE("sums of windows are those of the numbers in them") {
  NumberColumns columns;
  for (std::uint64_t i = 0; i < 100; ++i) {
    if (i >= 40 && i < 60) continue;  // two windows without a number
    columns.ordinals.push_back(1'003 + i);
    columns.bits.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(i)));
  }
  WindowSums sums;
  REQUIRE(sum_windows(columns, 10, 3, sums));
  REQUIRE(sums.windows.size() == 8);
  for (std::size_t w = 0; w < sums.windows.size(); ++w) {
    const std::uint64_t first = w < 4 ? 10 * w : 10 * w + 20;
    CAPTURE(w);
    CHECK(sums.begin_of(w) == 1'003 + first);
    CHECK(sums.windows[w].count == 10);
    CHECK(sums.windows[w].sum + sums.windows[w].sum_low == 10 * static_cast<double>(first) + 45);
  }
  // The first window is cut where the group begins, and no sum is told that is none.
  REQUIRE(sum_windows(columns, 10, 0, sums));
  CHECK(sums.windows[0].count == 7);
  columns.bits[5] = std::bit_cast<std::uint64_t>(HUGE_VAL);
  CHECK_FALSE(sum_windows(columns, 10, 3, sums));

  const WholeGroup group = group_of(7, 0, columns);
  CHECK(is_cut_by(group.numbers, 10));
  CHECK_FALSE(is_cut_by(group.numbers, 2));    // as soon decoded
  CHECK_FALSE(is_cut_by(group.numbers, 200));  // not cut at all
}

TEST_CASE("sums of windows come back bit for bit, whatever they are") {
  const std::uint64_t first = test::test_seed(20261130);
  for (std::uint64_t run = 0; run < 400; ++run) {
    const std::uint64_t seed = first + run;
    CAPTURE(seed);
    SeededRandom random(seed);
    const std::uint64_t kind = random.below(6);
    const auto some_double = [&]() -> double {
      switch (kind) {
        case 0: return 0;
        case 1:
          return (static_cast<double>(random.below(100'000)) - 50'000) /
                 std::pow(10, static_cast<double>(random.below(8)));
        case 2: return std::ldexp(static_cast<double>(random.below(1 << 20)), -70);
        case 3: return random.below(2) == 0 ? -0.0 : std::numeric_limits<double>::denorm_min();
        case 4: return std::ldexp(static_cast<double>(random.next() >> 11), -1074);
        default:
          return std::ldexp(static_cast<double>(random.next() >> 11),
                            static_cast<int>(random.below(1900)) - 1000);
      }
    };
    WindowSums want;
    want.every = 60;
    const bool is_even = random.below(2) == 0;
    const std::uint64_t windows = 1 + random.below(random.below(2) == 0 ? 12 : 300);
    std::uint32_t number = 0;
    for (std::uint64_t i = 0; i < windows; ++i) {
      const bool is_end = i == 0 || i + 1 == windows;
      const auto count = static_cast<std::uint32_t>(is_even && !is_end ? 60 : random.below(4096));
      want.windows.push_back({number, count, some_double(), some_double()});
      number += static_cast<std::uint32_t>(1 + (is_even ? 0 : random.below(300)));
    }
    Bytes bytes;
    append_window_sums(bytes, want);
    WindowSums got;
    got.every = 60;
    REQUIRE(take_window_sums(bytes, got));
    check_same(got, want);
    // What is cut short is told.
    REQUIRE_FALSE(take_window_sums(ByteView(bytes).substr(0, random.below(bytes.size())), got));
  }
}

TEST_CASE("kept sums are found again, and go with their file") {
  BlockCache cache(1u << 20);
  KeptSums kept(cache);
  const NumberColumns columns = columns_of(1'000);
  const WholeGroup group = group_of(7, 12'345, columns);
  WindowSums sums, found;
  REQUIRE(sum_windows(columns, kEvery, 3, sums));
  SumsAdmission admits;
  CHECK_FALSE(kept.find(group, kEvery, 3, found, admits));
  CHECK(admits.admits);
  kept.keep(group, sums);
  REQUIRE(kept.find(group, kEvery, 3, found, admits));
  check_same(found, sums);
  CHECK_FALSE(kept.find(group, kEvery, 4, found, admits));
  CHECK_FALSE(kept.find(group, kEvery + 1, 3, found, admits));
  CHECK_FALSE(kept.find(group_of(7, 12'346, columns), kEvery, 3, found, admits));
  CHECK_FALSE(kept.find(group_of(8, 12'345, columns), kEvery, 3, found, admits));
  // A group with many windows lies alone.
  const NumberColumns many = columns_of(1'000, 4'000);
  const WholeGroup long_group = group_of(7, 14'000, many);
  REQUIRE(sum_windows(many, 10, 0, sums));
  kept.keep(long_group, sums);
  REQUIRE(kept.find(long_group, 10, 0, found, admits));
  check_same(found, sums);
  kept.forget(8);
  CHECK(kept.find(group, kEvery, 3, found, admits));
  kept.forget(7);
  CHECK_FALSE(kept.find(group, kEvery, 3, found, admits));
  CHECK_FALSE(kept.find(long_group, 10, 0, found, admits));
  CHECK(cache.used_bytes() == 0);
}

// A scan's groups, in the order in which they lie in the file. How many were found.
std::size_t ask(KeptSums& kept, std::uint64_t groups) {
  std::size_t hits = 0;
  SumsAdmission admission;
  for (std::uint64_t i = 0; i < groups; ++i) {
    const NumberColumns columns = columns_of(i * kReadings + 17);
    const WholeGroup group = group_of(7, i * 600, columns);
    WindowSums sums, found;
    REQUIRE(sum_windows(columns, kEvery, 0, sums));
    if (kept.find(group, kEvery, 0, found, admission)) {
      check_same(found, sums);
      ++hits;
    } else if (admission.admits) {
      kept.keep(group, sums);
    }
  }
  return hits;
}

TEST_CASE("a day of minutes of a hundred series fits into two megabytes") {
  constexpr std::uint64_t kGroups = 16'000;
  BlockCache cache(2u << 20);
  KeptSums kept(cache);
  CHECK(ask(kept, kGroups) == 0);
  CHECK(ask(kept, kGroups) == kGroups);
  CHECK(cache.used_bytes() / kGroups < 120);
}

TEST_CASE("where sums of more groups are asked for than fit, some stay") {
  constexpr std::uint64_t kGroups = 30'000;
  BlockCache cache(1u << 20);
  KeptSums kept(cache);
  for (int round = 0; round < 3; ++round) ask(kept, kGroups);
  CHECK(cache.used_bytes() <= 1u << 20);
  CHECK(ask(kept, kGroups) > kGroups / 6);
}

}  // namespace
}  // namespace edgecase::engine
