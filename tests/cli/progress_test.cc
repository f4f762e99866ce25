#include "progress.h"

#include <doctest/doctest.h>

#include <string>

namespace edgecase::cli {
namespace {

TEST_CASE("progress says how long the rest takes once it can tell") {
  struct Case {
    double share, seconds;
    const char* left;
  };
  for (const Case& c : {Case{0.5, 1, ""}, Case{0.001, 100, ""}, Case{0, 50, ""},
                        Case{0.5, 10, "10s"}, Case{0.25, 25, "1m 15s"}, Case{0.1, 1'000, "2h 30m"},
                        Case{1, 10, "0s"}, Case{1.5, 10, "0s"}, Case{0.006, 1e12, "99h 00m"}}) {
    CAPTURE(c.share);
    CAPTURE(c.seconds);
    CHECK(time_left(c.share, c.seconds) == c.left);
  }
}

}  // namespace
}  // namespace edgecase::cli
