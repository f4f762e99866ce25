// The core workloads of YCSB on a store: ycsb-a … ycsb-f. Load, settle, run.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// With peers or rounds each run is in a process of its own (comparison.h). Cancelled on Ctrl-C.
Result<Report> run_ycsb(const BenchOptions& options);

}  // namespace edgecase::cli::bench
