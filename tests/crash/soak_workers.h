// Processes that live the lives of seeds side by side, each of which takes the next seed that
// nobody has taken: what is done is one range at any time, however fast each of them is. One that
// dies in a life has found a broken promise; another takes its place.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "crash/crash_life.h"

namespace edgecase::test {

inline constexpr std::size_t kSoakProcessesMax = 64;

struct SoakTotals {
  std::uint64_t lives = 0, crashes = 0, acknowledged = 0, refused = 0, faults = 0, operations = 0;
  CrashCounters store;

  void add(const LifeReport& report);
  void add(const SoakTotals& other);
};

class SoakWorkers {
 public:
  // The life of a seed, in a process of its own; false: a promise was broken.
  using LiveSeed = std::function<bool(std::uint64_t seed, SoakTotals& totals)>;

  // Seeds from `first` on, up to and without `end`. Forks: to be made while there is one thread.
  SoakWorkers(std::size_t processes, std::uint64_t first, std::uint64_t end, LiveSeed live);
  // Waits for the lives that are being lived.
  ~SoakWorkers();
  SoakWorkers(const SoakWorkers&) = delete;
  SoakWorkers& operator=(const SoakWorkers&) = delete;

  // Replaces those that died. False: all have ended.
  bool look_after();
  // A process that has begun a life ends it; nobody begins another.
  void stop();

  // All seeds before this one are done.
  std::uint64_t done_before() const;
  // Seeds that broke a promise, in the order they were found; some may be behind done_before().
  std::vector<std::uint64_t> broken() const;
  SoakTotals totals() const;

 private:
  struct Shared;

  void start(std::size_t worker);
  void work(std::size_t worker);
  void note_broken(std::uint64_t seed);

  const std::size_t processes_;
  const std::uint64_t end_;
  const LiveSeed live_;
  Shared* shared_;  // by all the processes
  std::array<pid_t, kSoakProcessesMax> processes_of_;
};

}  // namespace edgecase::test
