#include "app/remedy.h"

#include <doctest/doctest.h>

namespace edgecase::app {
namespace {

TEST_CASE("what went wrong is told with what helps, unless the message says that itself") {
  CHECK(with_remedy(Status(StatusCode::OutOfSpace, "/d: full"))
            .ends_with("/d: full; to do: free space on that drive"));
  CHECK(with_remedy(Status(StatusCode::Unsupported, "/d: newer"))
            .ends_with(
                "; to do: install the version of EdgeCase that wrote the store, or a later one"));
  const Status says_it(StatusCode::InvalidArgument, "key: run chmod");
  CHECK(with_remedy(says_it) == says_it.to_string());
}

TEST_CASE("of the drives the one is named that takes no writes, the metadata drive first") {
  Stats stats;
  CHECK(drive_trouble(stats) == "");
  stats.values.degraded = Status(StatusCode::Unavailable, "/v: is the drive mounted?");
  const std::string values = drive_trouble(stats);
  CHECK(values.starts_with("the values drive takes no writes: "));
  CHECK(values.ends_with("/v: is the drive mounted?; to do: mount it, or correct storage.values"));
  stats.metadata.degraded = Status(StatusCode::OutOfSpace, "/m: full");
  CHECK(drive_trouble(stats).starts_with("the metadata drive takes no writes: "));
  CHECK(drive_trouble(stats).ends_with("/m: full; to do: free space on that drive"));
}

}  // namespace
}  // namespace edgecase::app
