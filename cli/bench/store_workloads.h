// The workloads on a store itself, whichever engine it is: fillseq fillrandom overwrite
// deleterandom readrandom hotkeys readmissing readseq seekrandom, and tenants (tenants.cc).
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Makes a private store, fills it where the workload begins with one, runs, and removes it. With
// peers or rounds it does so in a child process a run (comparison.h). Cancelled on Ctrl-C.
Result<Report> run_store_workload(const BenchOptions& options);
Result<Report> run_tenants(const BenchOptions& options);

}  // namespace edgecase::cli::bench
