// Room that is kept on each drive for what must be written when it is full.
#include "file/space_reserve.h"

#include <doctest/doctest.h>

#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kReserveBytes = 64u << 10;

struct Reserved {
  test::MemoryFileSystem disk{{"/m", "/v"}};
  SpaceReserve reserve{disk, {"/m/RESERVE", "/v/RESERVE"}, kReserveBytes};
};

}  // namespace

TEST_CASE("a reserve takes its room once on each drive, and gives all of it back") {
  Reserved has;
  const std::uint64_t empty_bytes = has.disk.used_bytes("/m");
  CHECK_FALSE(has.reserve.release());
  CHECK(has.reserve.fill());
  CHECK(has.reserve.fill());
  CHECK(*has.disk.file_size("/m/RESERVE") == kReserveBytes);
  CHECK(*has.disk.file_size("/v/RESERVE") == kReserveBytes);
  CHECK(has.disk.used_bytes("/m") >= empty_bytes + kReserveBytes);
  CHECK(has.reserve.release());
  CHECK(has.disk.used_bytes("/m") == empty_bytes);
  CHECK_FALSE(has.disk.exists("/v/RESERVE"));
  CHECK_FALSE(has.reserve.release());
}

TEST_CASE("a drive without room takes nothing for it, and does not keep the other from it") {
  Reserved has;
  has.disk.set_capacity("/m", kReserveBytes / 2);
  const std::uint64_t before = has.disk.used_bytes("/m");
  CHECK_FALSE(has.reserve.fill());
  CHECK(has.disk.used_bytes("/m") == before);
  CHECK(has.disk.exists("/v/RESERVE"));
  has.disk.set_capacity("/m", 0);
  CHECK(has.reserve.fill());
}

TEST_CASE("a reserve of another size, from another configuration, is made anew") {
  Reserved has;
  REQUIRE(has.reserve.fill());
  SpaceReserve larger(has.disk, {"/m/RESERVE"}, 2 * kReserveBytes);
  CHECK(larger.fill());
  CHECK(*has.disk.file_size("/m/RESERVE") == 2 * kReserveBytes);
}

TEST_CASE("a reserve of nothing makes no files") {
  test::MemoryFileSystem disk{{"/m"}};
  SpaceReserve none(disk, {"/m/RESERVE"}, 0);
  CHECK(none.fill());
  CHECK_FALSE(disk.exists("/m/RESERVE"));
}

}  // namespace edgecase::engine
