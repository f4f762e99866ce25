#include "edgecase/random.h"

#include <doctest/doctest.h>

#include <array>

#include "edgecase/clock.h"

using namespace edgecase;

TEST_CASE("random: a seed always gives the same numbers, another seed others") {
  SeededRandom first(42);
  SeededRandom second(42);
  SeededRandom third(43);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = first.next();
    REQUIRE(second.next() == value);
    equal += third.next() == value;
  }
  CHECK(equal == 0);
  SeededRandom golden(1);
  CHECK(golden.next() == 12966619160104079557ULL);
}

TEST_CASE("random: below() stays below and reaches everything") {
  SeededRandom random(7);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(random.below(6));
  for (const int count : counts) {
    CHECK(count > 9'500);
    CHECK(count < 10'500);
  }
  CHECK(random.below(1) == 0);
}

TEST_CASE("random: the kernel's generator does not repeat itself") {
  CHECK(system_random().next() != system_random().next());
}

TEST_CASE("clock: boot time does not go back and wall time is of this century") {
  Clock& clock = system_clock();
  const std::int64_t before = clock.boot_ns();
  CHECK(clock.boot_ns() >= before);
  CHECK(clock.wall_ns() > 0);
}
