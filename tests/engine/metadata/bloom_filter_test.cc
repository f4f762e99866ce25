#include "metadata/umeta_block.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "base/hash.h"

namespace edgecase::engine {
namespace {

std::uint64_t hash_of(std::uint64_t i) {
  return hash64("key " + std::to_string(i));
}

TEST_CASE("a filter finds all that was added and little that was not") {
  // Where there are few lines they fill unevenly.
  const std::vector<std::pair<FilterShape, int>> shapes = {{kUsualFilter, 300}, {kFineFilter, 60}};
  for (const auto& [tried, wrong_max] : shapes) {
    const FilterShape shape = tried;
    for (const std::uint64_t count : {1u, 2u, 10u, 51u, 52u, 100u, 6500u}) {
      CAPTURE(shape.bits_per_key);
      CAPTURE(count);
      std::vector<std::uint64_t> hashes;
      for (std::uint64_t i = 0; i < count; ++i) hashes.push_back(hash_of(i));
      Bytes filter;
      append_filter(filter, hashes, shape);
      CHECK(filter.size() == filter_bytes(count, shape));
      for (const std::uint64_t hash : hashes) REQUIRE(filter_may_contain(filter, hash));
      int wrong = 0;
      for (std::uint64_t i = 0; i < 10'000; ++i)
        if (filter_may_contain(filter, hash_of(1'000'000 + i))) ++wrong;
      CHECK(wrong < wrong_max);
    }
  }
}

TEST_CASE("the bits that lie in tables never change") {
  struct Case {
    FilterShape shape;
    std::uint64_t count;
    std::size_t bytes;
    std::uint32_t checksum;
  };
  for (const Case& c :
       {Case{kUsualFilter, 51, 65, 701540734}, Case{kUsualFilter, 124, 157, 2696717863},
        Case{kFineFilter, 16, 33, 3180003057}, Case{kFineFilter, 51, 103, 3887711461}}) {
    CAPTURE(c.count);
    std::vector<std::uint64_t> hashes;
    for (std::uint64_t i = 0; i < c.count; ++i) hashes.push_back(hash_of(i));
    Bytes filter;
    append_filter(filter, hashes, c.shape);
    CHECK(filter.size() == c.bytes);
    CHECK(crc32c(filter) == c.checksum);
  }
}

TEST_CASE("a filter of nothing or of nonsense lets everything through") {
  Bytes none;
  append_filter(none, {}, kFineFilter);
  CHECK(none.size() == filter_bytes(0, kFineFilter));
  CHECK(filter_may_contain(none, 1));
  CHECK(filter_may_contain("", 1));
  CHECK(filter_may_contain(Bytes("\x07"), 1));
  CHECK(filter_may_contain(Bytes("\x00garbage", 8), 1));
  CHECK(filter_may_contain(Bytes("\xff\x00\x00", 3), 1));
}

}  // namespace
}  // namespace edgecase::engine
