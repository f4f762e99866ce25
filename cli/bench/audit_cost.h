// audit: what the audit log costs a durable daemon. Line protocol, ten readings a request, and
// reads of a newest reading, by 1, 16 and 64 clients, with audit.mode off, batched and strict,
// taking turns on daemons of their own.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are requests that store, in strict mode, by the most clients. The other figures are
// medians over the rounds, by mode and clients, and ratios to the mode off.
Result<Report> run_audit_cost(const BenchOptions& options);

}  // namespace edgecase::cli::bench
