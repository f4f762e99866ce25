// Runs a plan and holds the store to its promises: after each crash it opens, and holds what it
// held after some batch between the last that was acknowledged for good and the last handed in;
// between crashes it answers as a model does or says which drive fails; once the drives are well it
// works again. tests/crash/README.md lists the promises.
#pragma once

#include <cstdint>
#include <string>

#include "crash/crash_plan.h"
#include "crash/crash_store.h"

namespace edgecase::test {

struct LifeReport {
  std::string broken;    // the promise that was broken, and where; empty: none
  std::size_t step = 0;  // of the plan, from 1; one behind the last: after it
  std::uint64_t crashes = 0;
  std::uint64_t stops = 0;         // of them, those that a Stop brought about
  std::uint64_t acknowledged = 0;  // batches
  std::uint64_t refused = 0;
  std::uint64_t faults = 0;
  std::uint64_t operations = 0;  // on the drives
  CrashCounters store;
};

LifeReport live(const Plan& plan, const WrapDrives& wrap = {});

// Leaves out steps as long as the plan still breaks a promise, and makes their numbers smaller.
// Runs at most `lives_max` lives.
Plan shrink(const Plan& plan, const WrapDrives& wrap = {}, std::size_t lives_max = 600);

}  // namespace edgecase::test
