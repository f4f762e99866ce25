#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "bench/loads.h"

using namespace edgecase::cli::bench;

namespace {

SensorLineOptions small() {
  SensorLineOptions options;
  options.lines = 2'500;
  options.devices = 7;
  options.seed = 3;
  return options;
}

}  // namespace

TEST_CASE("sensor lines: bodies hold the lines asked for, of so many fields") {
  const auto bodies = make_sensor_bodies(small());
  REQUIRE(bodies.size() == 3);
  std::set<std::string> series_and_time;
  std::size_t lines = 0;
  for (const std::string& body : bodies) {
    std::istringstream text(body);
    for (std::string line; std::getline(text, line); ++lines) {
      CHECK(line.starts_with("node,device=node-"));
      CHECK(std::count(line.begin(), line.end(), '=') == 11);  // the device and ten fields
      CHECK(line.find("--") == std::string::npos);
      series_and_time.insert(line.substr(0, line.find(' ')) + line.substr(line.rfind(' ')));
    }
  }
  CHECK(lines == 2'500);
  CHECK(series_and_time.size() == 2'500);
}

TEST_CASE("sensor lines: a seed gives the same bytes, another seed others") {
  SensorLineOptions options = small();
  const auto first = make_sensor_bodies(options);
  CHECK(make_sensor_bodies(options) == first);
  options.seed = 4;
  CHECK(make_sensor_bodies(options) != first);
}
