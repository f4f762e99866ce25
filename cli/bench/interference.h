// What an operation waits for that is none of its own business: compactions (stall.cc), and the
// tenant next door (neighbour.cc).
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// With peers or rounds each run is a child process (comparison.h). Cancelled on Ctrl-C.
Result<Report> run_stall(const BenchOptions& options);
Result<Report> run_neighbour(const BenchOptions& options);

}  // namespace edgecase::cli::bench
