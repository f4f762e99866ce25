#include "bench/fleet/fleet.h"

#include <doctest/doctest.h>

namespace edgecase::fleet {
namespace {

TEST_CASE("fleet: a target that was away, slow and short of patience is asked for what it takes") {
  FleetOptions options;
  options.boards = 200;
  options.requests_per_second = 400;
  options.lines_per_second = 60'000;
  const auto figures = run_fleet(options, usual_phases());
  REQUIRE(figures.size() == 6);
  for (const PhaseFigures& each : figures) {
    CAPTURE(each.name);
    CHECK(each.peak_per_second <= 2 * each.capacity_per_second);
    CHECK(each.given_up == 0);  // nothing is done for clients that are gone
  }
  // Each of them backs off: two requests a minute.
  CHECK(static_cast<double>(figures[1].requests) < 3.0 * 200 * 60);
  CHECK(figures[2].lines_per_second > 0.7 * options.lines_per_second);
  CHECK(figures[3].lines_per_second > 0.05 * options.lines_per_second);  // it takes a tenth
  CHECK(figures[3].low_share > 0.8);
  CHECK(figures[3].high_share < 1.2);
  CHECK(figures[4].refused > 0);
  CHECK(figures[4].low_share > 0.1);
  // All of them get rid of everything.
  CHECK(figures[5].waiting <= 2 * 200 * options.readings_per_second);
}

}  // namespace
}  // namespace edgecase::fleet
