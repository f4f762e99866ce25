// table2: what the CaseDB paper's table 2 says of LevelDB, WiscKey and CaseDB, row by row, and for
// each row what shows on a store of this engine that it holds here.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Fails if a row does not hold. Peers are measured where a row is a figure. --num: keys of each
// store.
Result<Report> run_table2(const BenchOptions& options);

}  // namespace edgecase::cli::bench
