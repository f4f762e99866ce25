#include "table/table_files.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <utility>

#include "edgecase/machine.h"

namespace edgecase::engine {
namespace {

std::shared_ptr<const int> object(int value) {
  return std::make_shared<const int>(value);
}

TEST_CASE("the cache gives back what was put in and stays within its bytes") {
  constexpr std::uint64_t kCapacity = 100'000;
  BlockCache cache(kCapacity);
  CHECK(cache.find<int>(1, 0) == nullptr);
  for (int i = 0; i < 1000; ++i) {
    cache.insert(1, static_cast<std::uint64_t>(i), object(i), 1000, CacheClass::Item);
    REQUIRE(cache.used_bytes() <= kCapacity);
    const auto found = cache.find<int>(1, static_cast<std::uint64_t>(i));
    REQUIRE(found != nullptr);
    REQUIRE(*found == i);
  }
  CHECK(cache.find<int>(1, 0) == nullptr);
  cache.insert(1, 5000, object(5), kCapacity, CacheClass::Item);  // too large to keep
  CHECK(cache.find<int>(1, 5000) == nullptr);
}

TEST_CASE("a smaller capacity holds at once, and a larger one again later") {
  BlockCache cache(100'000);
  for (std::uint64_t i = 0; i < 80; ++i) cache.insert(1, i, object(1), 1000, CacheClass::Item);
  CHECK(cache.used_bytes() > 80'000);
  cache.set_capacity(50'000);
  CHECK(cache.used_bytes() <= 50'000);
  CHECK(cache.used_bytes() > 40'000);
  for (std::uint64_t i = 100; i < 200; ++i) cache.insert(1, i, object(1), 1000, CacheClass::Item);
  CHECK(cache.used_bytes() <= 50'000);
  CHECK(cache.find<int>(1, 199) != nullptr);
  cache.set_capacity(100'000);
  for (std::uint64_t i = 200; i < 300; ++i) cache.insert(1, i, object(1), 1000, CacheClass::Item);
  CHECK(cache.used_bytes() > 80'000);
}

TEST_CASE("what is put in place of something takes its bytes, where it is not too large") {
  BlockCache cache(100'000);
  cache.insert(1, 0, object(1), 1000, CacheClass::Item);
  const std::uint64_t before = cache.used_bytes();
  cache.insert(1, 0, object(2), 3000, CacheClass::Item);  // it is there
  CHECK(*cache.find<int>(1, 0) == 1);
  cache.replace(1, 0, object(3), 3000, CacheClass::Item);
  CHECK(*cache.find<int>(1, 0) == 3);
  CHECK(cache.used_bytes() == before + 2000);
  cache.replace(1, 0, object(4), 90'000, CacheClass::Item);
  CHECK(*cache.find<int>(1, 0) == 3);
  cache.replace(1, 1, object(5), 1000, CacheClass::Item);
  CHECK(*cache.find<int>(1, 1) == 5);
}

TEST_CASE("what came first goes first, where nothing is asked for") {
  BlockCache cache(100'000);  // 88 of these, with what the cache needs for each
  for (std::uint64_t i = 0; i < 1000; ++i) cache.insert(1, i, object(1), 1000, CacheClass::Item);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CAPTURE(i);
    CHECK((cache.find<int>(1, i) != nullptr) == (i >= 1000 - 88));
  }
}

TEST_CASE("what is asked for again and again stays") {
  BlockCache cache(100'000);
  cache.insert(7, 7, object(7), 1000, CacheClass::Item);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    cache.insert(1, i, object(1), 1000, CacheClass::Item);
    REQUIRE(cache.find<int>(7, 7) != nullptr);
  }
}

TEST_CASE("blocks of records stay where items that nobody asks for again come and go") {
  BlockCache cache(100'000);
  std::size_t read_again = 0;
  std::uint64_t item = 0;
  for (int round = 0; round < 100; ++round) {
    // Half of the cache in blocks; between two looks at one the hand goes round once or twice.
    for (std::uint64_t block = 0; block < 40; ++block) {
      if (cache.find<int>(7, block) == nullptr) {
        cache.insert(7, block, object(7), 1000, CacheClass::Records);
        if (round > 0) ++read_again;
      }
      for (int i = 0; i < 3; ++i) cache.insert(1, ++item, object(1), 1000, CacheClass::Item);
    }
  }
  CHECK(read_again == 0);
  CHECK(cache.used_bytes() <= 100'000);
  // They go when they are not asked for any more.
  for (int i = 0; i < 2000; ++i) cache.insert(1, ++item, object(1), 1000, CacheClass::Item);
  for (std::uint64_t block = 0; block < 40; ++block) CHECK(cache.find<int>(7, block) == nullptr);
}

TEST_CASE("a full cache takes in what is wanted twice, and not what is wanted once") {
  BlockCache cache(100'000);
  const auto is_wanted = [&cache](std::uint64_t file, std::uint64_t offset) {
    bool admits = false;
    CHECK(cache.find_or_note<int>(file, offset, 1000, admits) == nullptr);
    return admits;
  };
  std::uint64_t taken = 0;
  for (; is_wanted(1, taken); ++taken) cache.insert(1, taken, object(1), 1000, CacheClass::Item);
  CHECK(taken == 88);
  // 98 misses are remembered; each of these is forgotten when it comes again.
  std::uint64_t again = 0;
  for (int round = 0; round < 4; ++round)
    for (std::uint64_t i = 0; i < 5000; ++i) again += is_wanted(2, i) ? 1u : 0u;
  CHECK(again < 100);
  std::uint64_t soon = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    is_wanted(3, i);
    soon += is_wanted(3, i) ? 1u : 0u;
  }
  CHECK(soon == 1000);
  bool admits = true;
  CHECK(cache.find_or_note<int>(1, taken - 1, 1000, admits) != nullptr);
  CHECK_FALSE(admits);
}

TEST_CASE("a forgotten file leaves nothing behind") {
  BlockCache cache(16u << 20);
  for (std::uint64_t i = 0; i < 100; ++i) {
    cache.insert(1, i, object(1), 100, CacheClass::Item);
    cache.insert(2, i, object(2), 100, CacheClass::Item);
  }
  const std::uint64_t both = cache.used_bytes();
  const auto held = cache.find<int>(1, 5);
  cache.erase_file(1);
  CHECK(cache.used_bytes() == both / 2);
  CHECK(cache.find<int>(1, 5) == nullptr);
  CHECK(*held == 1);
  CHECK(*cache.find<int>(2, 5) == 2);
  cache.erase_file(2);
  CHECK(cache.used_bytes() == 0);
}

TEST_CASE("the cache finds everything it holds, whatever came and went before") {
  constexpr std::uint64_t kSeed = 3;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  BlockCache cache(400'000);  // one shard
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::weak_ptr<const int>> kept;
  for (int i = 0; i < 30'000; ++i) {
    const std::uint64_t file = random.below(8);
    const std::uint64_t offset = random.below(700);
    if (random.below(1000) == 0) {
      cache.erase_file(file);
    } else if (const auto known = kept[{file, offset}].lock()) {
      // The cache alone keeps it alive.
      REQUIRE(cache.find<int>(file, offset) == known);
    } else {
      REQUIRE(cache.find<int>(file, offset) == nullptr);
      auto fresh = object(i);
      kept[{file, offset}] = fresh;
      cache.insert(file, offset, fresh, 100 + random.below(400),
                   random.below(4) == 0 ? CacheClass::Records : CacheClass::Item);
    }
  }
  CHECK(cache.used_bytes() <= 400'000);
}

TEST_CASE("open files are closed the longest unused first, by number and by bytes") {
  OpenFiles<int> files(3, 100);
  for (std::uint64_t n = 1; n <= 3; ++n) files.insert(n, object(static_cast<int>(n)), 10);
  REQUIRE(files.find(1) != nullptr);
  files.insert(4, object(4), 10);
  CHECK(files.find(2) == nullptr);
  CHECK(files.find(1) != nullptr);
  CHECK(*files.insert(1, object(99), 10) == 1);  // the first one is kept
  files.insert(5, object(5), 95);
  CHECK(files.count() == 1);
  CHECK(files.used_bytes() == 95);
  files.insert(6, object(6), 1000);  // one stays, whatever it takes
  CHECK(files.count() == 1);
  CHECK(files.find(6) != nullptr);
  files.erase(6);
  files.erase(6);
  CHECK(files.used_bytes() == 0);
}

}  // namespace
}  // namespace edgecase::engine
