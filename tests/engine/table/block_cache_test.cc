#include "table/block_cache.h"

#include <doctest/doctest.h>

#include <memory>

#include "table/open_files.h"

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
    cache.insert(1, static_cast<std::uint64_t>(i), object(i), 1000);
    REQUIRE(cache.used_bytes() <= kCapacity);
    const auto found = cache.find<int>(1, static_cast<std::uint64_t>(i));
    REQUIRE(found != nullptr);
    REQUIRE(*found == i);
  }
  CHECK(cache.find<int>(1, 0) == nullptr);
  cache.insert(1, 5000, object(5), kCapacity);  // too large to keep
  CHECK(cache.find<int>(1, 5000) == nullptr);
}

TEST_CASE("what is asked for again and again stays") {
  BlockCache cache(100'000);
  cache.insert(7, 7, object(7), 1000);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    cache.insert(1, i, object(1), 1000);
    REQUIRE(cache.find<int>(7, 7) != nullptr);
  }
}

TEST_CASE("a forgotten file leaves nothing behind") {
  BlockCache cache(16u << 20);
  for (std::uint64_t i = 0; i < 100; ++i) {
    cache.insert(1, i, object(1), 100);
    cache.insert(2, i, object(2), 100);
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
