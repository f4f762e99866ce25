// Bugs planted between the engine and its drives: a FileSystem that does one thing less, or later,
// or twice, as an engine would that forgot it. The harness must find each (planted_test.cc); none
// of it is in the sources of the engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "crash/crash_plan.h"
#include "crash/crash_store.h"

namespace edgecase::test {

struct PlantedBug {
  std::string name;
  std::string what;         // the engine seems to do
  std::uint64_t seeds = 0;  // by then the harness must have found it
  WrapDrives plant;
  Plan (*make)(std::uint64_t seed) = make_plan;
};

const std::vector<PlantedBug>& planted_bugs();

}  // namespace edgecase::test
