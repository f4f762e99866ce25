#include "bench/experiments/logkv_commands.h"

#include <algorithm>

#include "edgecase/machine.h"

namespace edgecase::cli::bench {
namespace {

constexpr double kHitRates[] = {0.1, 0.2, 0.6, 0.8, 0.99};
constexpr double kReadFractions[] = {0.2, 0.4, 0.6, 0.8};
constexpr double kHotFractions[] = {0.05, 0.1, 0.2};
constexpr double kHotRates[] = {0.05, 0.7, 0.8};

bool chance(SeededRandom& random, double probability) {
  constexpr std::uint64_t kParts = 1'000'000;
  return static_cast<double>(random.below(kParts)) < probability * kParts;
}

}  // namespace

std::vector<LogkvMix> logkv_mixes() {
  std::vector<LogkvMix> mixes;
  for (const double hit : kHitRates) {
    for (const double read : kReadFractions) {
      for (const double hot : kHotFractions) {
        for (const double rate : kHotRates) {
          if (hot <= rate) mixes.push_back({hit, read, hot, rate});
        }
      }
    }
  }
  return mixes;
}

std::vector<LogkvCommand> make_logkv_commands(const LogkvMix& mix, std::uint64_t count,
                                              std::uint64_t seed) {
  SeededRandom random(seed);
  std::vector<LogkvCommand> commands;
  commands.reserve(count);
  std::uint32_t keys = 0;
  while (commands.size() < count) {
    const bool read = chance(random, mix.read_fraction);
    if (keys > 0 && chance(random, mix.hit_rate)) {
      const auto hot = std::max(1u, static_cast<std::uint32_t>(mix.hot_fraction * keys));
      const bool cold = hot < keys && !chance(random, mix.hot_rate);
      const std::uint64_t key = cold ? hot + random.below(keys - hot) : random.below(hot);
      commands.push_back({static_cast<std::uint32_t>(key), read});
    } else if (read) {
      const std::uint64_t absent = random.below(LogkvCommand::kAbsentFrom);
      commands.push_back({LogkvCommand::kAbsentFrom + static_cast<std::uint32_t>(absent), true});
    } else {
      commands.push_back({keys++, false});
    }
  }
  return commands;
}

}  // namespace edgecase::cli::bench
