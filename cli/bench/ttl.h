// ttl: every key expires, a fifth of them at one instant, the others five days later. How long the
// fifth can still be read, and how long its bytes are still on the drives; with --peer redis the
// same in Redis.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are keys put. In this process, on the engine, with exact expiry.
Result<Report> run_ttl(const BenchOptions& options);

}  // namespace edgecase::cli::bench
