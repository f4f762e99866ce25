// The cost of protection: the same requests, half of them reads and half updates of hot records, to
// a plain daemon, to one that protects what it holds, and to one with everything on, taking turns;
// over TCP.
#pragma once

#include <cstdint>

#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

struct FeatureCost {
  double plain_per_second = 0;  // no audit log, no token, nothing said of devices
  // Encrypted at rest, audit.mode strict, a token, purposes said and stated.
  double features_per_second = 0;
  double features_ratio = 0;  // of plain
  // By TLS, too, and with retention that is exact.
  double everything_per_second = 0;
  double everything_ratio = 0;
};

// Medians over the rounds.
Result<FeatureCost> measure_feature_cost(const BenchOptions& options, std::uint64_t records,
                                         std::uint64_t operations, std::uint32_t clients);

}  // namespace edgecase::cli::bench
