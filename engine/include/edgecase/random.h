// Random numbers, as the engine and the daemon are given them.
#pragma once

#include <cstdint>

namespace edgecase {

class Random {
 public:
  virtual ~Random() = default;
  // 64 uniformly distributed bits. Thread-safe in system_random() only.
  virtual std::uint64_t next() = 0;
};

// The kernel's generator. Lives for the length of the process.
Random& system_random();

// xoshiro256**, for tests and workloads: the same seed gives the same numbers. Not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed);
  std::uint64_t next() override;
  // Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_[4];
};

}  // namespace edgecase
