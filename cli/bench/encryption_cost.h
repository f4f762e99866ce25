// encryption: what encryption costs a durable daemon, at rest, on the way, and both. Line protocol
// in large and in small requests, large values, and what was stored read back after a restart, over
// kept-alive TCP connections, by daemons of their own, taking turns.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are requests of many lines, encrypted at rest and on the way. The other figures are
// medians over the rounds, and ratios to those in clear.
Result<Report> run_encryption_cost(const BenchOptions& options);

}  // namespace edgecase::cli::bench
