// encryption: what encryption at rest costs a durable daemon. Line protocol in large and in small
// requests, large values, and what was stored read back after a restart, in clear and with a key,
// taking turns on daemons of their own.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are requests of many lines, with a key. The other figures are medians over the rounds,
// and ratios to those in clear.
Result<Report> run_encryption_cost(const BenchOptions& options);

}  // namespace edgecase::cli::bench
