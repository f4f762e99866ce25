// The experiments of the CaseDB paper (its figure 10 and section 3), each a sweep of value sizes
// over workloads on a store. What the paper published stands beside what was measured; it was
// another machine.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// casedb-writes, -reads, -metadata, -coalescing, -amplification: as options.workload says.
// --value-size makes it one size, --num as many keys for each. Cancelled on Ctrl-C.
Result<Report> run_casedb(const BenchOptions& options);

}  // namespace edgecase::cli::bench
