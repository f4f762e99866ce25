#include "value/group_cuts.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace edgecase::engine {
namespace {

constexpr std::int64_t kHour = 3'600'000'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

std::uint64_t at(std::int64_t time_ns) {
  return static_cast<std::uint64_t>(time_ns) ^ std::uint64_t{1} << 63;
}

// Before which of the entries, one every `step_ns` from `begin_ns` on, the group ends first.
int first_cut(std::int64_t begin_ns, std::int64_t step_ns, int count,
              std::int64_t span_ns = kHour) {
  GroupCuts cuts(span_ns);
  for (int i = 0; i < count; ++i) {
    if (cuts.ends_before("series", at(begin_ns + i * step_ns), static_cast<std::uint64_t>(i)))
      return i;
    cuts.add("series", at(begin_ns + i * step_ns));
  }
  return -1;
}

TEST_CASE("groups of a dense series end at multiples of the span") {
  struct Case {
    std::int64_t begin_ns, step_ns;
    int want;
  };
  for (const Case& c :
       {Case{0, kSecond, 3600}, Case{1, kSecond, 3600}, Case{0, 28 * kSecond, 129},
        Case{0, 29 * kSecond, -1}, Case{3000 * kSecond, kSecond, 600},
        Case{3590 * kSecond, kSecond, 3610},  // ten are crumbs
        Case{-1000 * kSecond, kSecond, 1000}, Case{-kHour - 500 * kSecond, kSecond, 500}}) {
    CAPTURE(c.begin_ns);
    CAPTURE(c.step_ns);
    CHECK(first_cut(c.begin_ns, c.step_ns, 4000) == c.want);
  }
  CHECK(first_cut(0, kSecond, 4000, 0) == -1);
  CHECK(first_cut(0, kSecond, 4000, -1) == -1);
}

TEST_CASE("groups at both ends of time are cut where there is a next span") {
  CHECK(first_cut(INT64_MIN, kSecond, 4000) > 0);
  CHECK(first_cut(INT64_MAX - 3000 * kSecond, kSecond, 3000) != 0);
  GroupCuts cuts(kHour);
  cuts.add("series", at(INT64_MAX));
  CHECK_FALSE(cuts.ends_before("series", at(INT64_MAX), 1));
}

TEST_CASE("a long group ends before another series, a short one goes on") {
  GroupCuts cuts(kHour);
  cuts.add("series a", at(0));
  CHECK_FALSE(cuts.ends_before("series b", at(0), kOwnGroupMin - 1));
  CHECK(cuts.ends_before("series b", at(0), kOwnGroupMin));
  CHECK_FALSE(GroupCuts(0).ends_before("series b", at(0), kOwnGroupMin));
}

}  // namespace
}  // namespace edgecase::engine
