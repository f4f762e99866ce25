#include "metadata/umeta_table.h"

#include <doctest/doctest.h>

#include <vector>

#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

std::vector<ValueFileUse> list_of(const ValueFileUses& uses) {
  return {uses.begin(), uses.end()};
}

TEST_CASE("value file uses are what was added, in any order, up to the largest numbers") {
  CHECK(ValueFileUses().empty());
  CHECK(list_of({}).empty());
  const std::uint64_t seed = test::test_seed(3);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<ValueFileUse> expected;
    ValueFileUses uses;
    std::uint64_t bytes = 0;
    for (std::uint64_t n = random.below(20); n > 0; --n) {
      const ValueFileUse use{random.next() >> random.below(64), random.next() >> random.below(64)};
      expected.push_back(use);
      uses.push_back(use);
      bytes += use.bytes;
    }
    REQUIRE(uses.size() == expected.size());
    REQUIRE(uses.empty() == expected.empty());
    REQUIRE(uses.total_bytes() == bytes);
    REQUIRE(list_of(uses) == expected);

    const std::uint64_t limit = random.next() >> random.below(64);
    const auto is_gone = [&](const ValueFileUse& use) { return use.file_number < limit; };
    ValueFileUses rest = uses;
    REQUIRE(rest.erase_if(is_gone) == std::erase_if(expected, is_gone));
    REQUIRE(list_of(rest) == expected);
    REQUIRE((rest == uses) == (rest.size() == uses.size()));
    rest.push_back({7, 1});
    expected.push_back({7, 1});
    REQUIRE(list_of(rest) == expected);
  }
}

}  // namespace
}  // namespace edgecase::engine
