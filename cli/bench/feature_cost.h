// What protection costs: the same requests, half of them reads and half updates of hot records, to
// a daemon with everything on and to a plain one, taking turns.
#pragma once

#include <cstdint>

#include "bench/bench_options.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

struct FeatureCost {
  double plain_per_second = 0;  // no audit log, no token, nothing said of devices
  double features_per_second =
      0;  // encrypted, audit.mode strict, a token, purposes said and stated
  double ratio = 0;
};

// Medians over the rounds.
Result<FeatureCost> measure_feature_cost(const BenchOptions& options, std::uint64_t records,
                                         std::uint64_t operations, std::uint32_t clients);

}  // namespace edgecase::cli::bench
