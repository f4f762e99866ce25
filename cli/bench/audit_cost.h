// audit: what the audit log costs a durable daemon. Line protocol, one line a request, reads of the
// newest readings of a device, and both mixed half and half on hot devices (YCSB's workload A), by
// 1, 16 and 64 clients, with audit.mode off, batched and strict, taking turns.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are requests of the mix, in strict mode, by the most clients. The other figures are
// medians over the rounds, by load and clients, and ratios to the mode off.
Result<Report> run_audit_cost(const BenchOptions& options);

}  // namespace edgecase::cli::bench
