#include <fcntl.h>
#include <sys/stat.h>

#include <doctest/doctest.h>

#include <fstream>

#include "file/machine.h"
#include "support/temp_directory.h"

namespace edgecase::engine {

TEST_CASE("a mark of synchronisation holds for an hour, and not for a clock that was set since") {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  constexpr std::int64_t kMarked = 1'763'647'200;
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/synchronized";
  CHECK_FALSE(was_synchronised(path.c_str(), kMarked * kSecondNs));
  std::ofstream(path).close();
  const timespec times[2] = {{kMarked, 0}, {kMarked, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  for (const std::int64_t age : {-1, 0, 1, 2048, 3600})
    CHECK(was_synchronised(path.c_str(), (kMarked + age) * kSecondNs));
  for (const std::int64_t age : {-3600, -2, 3601, 1'000'000'000})
    CHECK_FALSE(was_synchronised(path.c_str(), (kMarked + age) * kSecondNs));
}

}  // namespace edgecase::engine
