#include "base/shared_map.h"

#include <doctest/doctest.h>

#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

using TextMap = SharedMap<std::string>;
using PlainTextMap = std::map<std::uint64_t, std::string>;

void check_same(const TextMap& map, const PlainTextMap& model) {
  REQUIRE(map.size() == model.size());
  REQUIRE(map.empty() == model.empty());
  REQUIRE(PlainTextMap(map.begin(), map.end()) == model);
}

// One of what an edit may do to both.
void change_both(TextMap& map, PlainTextMap& model, SeededRandom& random, std::uint64_t numbers) {
  const std::uint64_t number = random.below(numbers);
  const std::string value = std::to_string(random.next());
  switch (random.below(4)) {
    case 0: CHECK(map.emplace(number, value) == model.emplace(number, value).second); break;
    case 1: CHECK(map.erase(number) == model.erase(number)); break;
    case 2: {
      std::string* const found = map.change(number);
      REQUIRE((found != nullptr) == model.contains(number));
      if (found != nullptr) *found = model[number] = value;
      break;
    }
    default: {
      const auto found = map.find(number);
      const auto expected = model.find(number);
      REQUIRE((found == map.end()) == (expected == model.end()));
      REQUIRE(map.contains(number) == (expected != model.end()));
      if (found == map.end()) break;
      CHECK(found->first == number);
      CHECK(found->second == expected->second);
      CHECK(map.at(number) == expected->second);
    }
  }
}

TEST_CASE("shared map does what a map does, and copies stay as they were") {
  const std::uint64_t seed = test::test_seed(11);
  CAPTURE(seed);
  SeededRandom random(seed);
  std::vector<std::pair<TextMap, PlainTextMap>> all(1);
  for (int round = 0; round < 400; ++round) {
    // Some are full of numbers, some have few: pieces are split and joined.
    auto& [map, model] = all[random.below(all.size())];
    const std::uint64_t numbers = random.below(3) == 0 ? 40 : 1000;
    for (int i = 0; i < 200; ++i) change_both(map, model, random, numbers);
    check_same(map, model);
    if (random.below(8) == 0)
      for (std::uint64_t number = 0; number < 900; ++number)
        CHECK(map.erase(number) == model.erase(number));
    switch (random.below(4)) {
      case 0:
        if (all.size() < 8) all.emplace_back(all[random.below(all.size())]);
        break;
      case 1: all[random.below(all.size())] = all[random.below(all.size())]; break;
      case 2: {
        auto& from = all[random.below(all.size())];
        auto moved = std::exchange(from, {});
        all.emplace_back(std::move(moved));
        std::erase_if(all, [](const auto& each) { return each.first.empty(); });
        if (all.empty()) all.emplace_back();
        break;
      }
      default: break;
    }
    for (const auto& [each, expected] : all) check_same(each, expected);
  }
}

TEST_CASE("shared map: numbers in order fill pieces, and a change copies one of them") {
  SharedMap<int> map;
  constexpr std::uint64_t kCount = 10 * SharedMap<int>::kPieceEntries;
  for (std::uint64_t i = 0; i < kCount; ++i) REQUIRE(map.emplace(i, 1));
  SharedMap<int> copy = map;
  CHECK(copy == map);
  *copy.change(70) = 2;
  CHECK_FALSE(copy == map);
  CHECK(map.at(70) == 1);
  std::size_t shared = 0;
  for (auto a = map.begin(), b = copy.begin(); a != map.end(); ++a, ++b) shared += &*a == &*b;
  CHECK(shared == kCount - SharedMap<int>::kPieceEntries);
  // What is its own by now it changes where it is.
  const int* const before = &copy.at(71);
  *copy.change(71) = 3;
  CHECK(&copy.at(71) == before);
  // Both lost the right to what they share.
  *map.change(5) = 4;
  CHECK(copy.at(5) == 1);
  map.clear();
  CHECK(map.empty());
  CHECK(copy.size() == kCount);
  const SharedMap<int> taken(std::move(copy));
  CHECK(taken.size() == kCount);
  CHECK(copy.empty());
}

TEST_CASE("shared map: pieces of few entries are joined") {
  for (const bool from_end : {false, true}) {
    SharedMap<int> map;
    constexpr std::uint64_t kCount = 100 * SharedMap<int>::kPieceEntries;
    for (std::uint64_t i = 0; i < kCount; ++i) REQUIRE(map.emplace(i, 1));
    for (std::uint64_t i = 0; i < kCount; ++i)
      if (i % 32 != 7) REQUIRE(map.erase(from_end ? kCount - 1 - i : i) == 1);
    std::size_t pieces = 1;
    for (auto at = map.begin(), next = std::next(at); next != map.end(); ++at, ++next)
      pieces += &*next != &*at + 1;
    CHECK(map.size() == kCount / 32);
    CHECK(pieces < 20);
  }
}

}  // namespace
}  // namespace edgecase::engine
