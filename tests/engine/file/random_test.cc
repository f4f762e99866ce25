#include "edgecase/machine.h"

#include <array>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

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

namespace {

constexpr std::uint64_t kPlaces = 1'024;
constexpr std::size_t kChosen = 200;

// The places, under `hash`, of what was chosen so that all fall on one place under `known`.
template <typename Make>
std::size_t places_of_chosen(const KeyedHash& known, const KeyedHash& hash, Make make) {
  std::set<std::uint64_t> places;
  std::size_t chosen = 0;
  for (std::uint64_t i = 0; chosen < kChosen; ++i) {
    if (make(known, i) % kPlaces != 0) continue;
    ++chosen;
    places.insert(make(hash, i) % kPlaces);
  }
  return places.size();
}

}  // namespace

TEST_CASE("keyed hash: what was chosen for one place is spread in another process") {
  SeededRandom first(1), second(2);
  const KeyedHash known(first), hash(second);
  const auto of_times = [](const KeyedHash& with, std::uint64_t i) { return with(7, i); };
  const auto of_far_times = [](const KeyedHash& with, std::uint64_t i) { return with(7, i << 40); };
  const auto of_texts = [](const KeyedHash& with, std::uint64_t i) {
    return with("cpu,host=" + std::to_string(i));
  };
  CHECK(places_of_chosen(known, known, of_times) == 1);
  // 200 thrown into 1,024 take 182 in the mean.
  CHECK(places_of_chosen(known, hash, of_times) > 150);
  CHECK(places_of_chosen(known, hash, of_far_times) > 150);
  CHECK(places_of_chosen(known, hash, of_texts) > 150);
  CHECK(KeyedHash()(1, 2) == KeyedHash()(1, 2));
}

TEST_CASE("keyed hash: every byte of a text counts, and its length") {
  SeededRandom random(3);
  const KeyedHash hash(random);
  std::set<std::uint64_t> seen;
  std::size_t texts = 0;
  for (std::size_t size = 0; size <= 50; ++size) {
    const std::string text(size, '\0');
    seen.insert(hash(text));
    ++texts;
    for (std::size_t at = 0; at < size; ++at) {
      for (const char other : {'\1', '\x80'}) {
        std::string changed = text;
        changed[at] = other;
        seen.insert(hash(changed));
        ++texts;
      }
    }
  }
  CHECK(seen.size() == texts);
}
