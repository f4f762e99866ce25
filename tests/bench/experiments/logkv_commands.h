// The commands of the LogKV paper's experiment (its table 1): mixes of reads and writes by how
// often a key is there already, and how often one of the few hot ones is meant.
#pragma once

#include <cstdint>
#include <vector>

namespace edgecase::cli::bench {

struct LogkvMix {
  double hit_rate;       // of all commands: those whose key is there
  double read_fraction;  // gets; the others are puts
  double hot_fraction;   // of the keys that are there
  double hot_rate;       // of the hits: those that mean a hot key
};

// The 140 of 180 combinations in which hot keys are not asked for more rarely than their number
// says.
std::vector<LogkvMix> logkv_mixes();

struct LogkvCommand {
  std::uint32_t key;  // puts of new keys count up from 0
  bool read;

  // Gets of what is never put.
  static constexpr std::uint32_t kAbsentFrom = 1u << 31;
  bool hits() const { return key < kAbsentFrom; }
};

// Digits of the largest key.
inline constexpr std::uint32_t kLogkvKeyMinBytes = 10;

// The same for the same seed.
std::vector<LogkvCommand> make_logkv_commands(const LogkvMix& mix, std::uint64_t count,
                                              std::uint64_t seed);

}  // namespace edgecase::cli::bench
