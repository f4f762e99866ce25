// ycsb: the CaseDB paper's figure 11 in one command. YCSB's workloads A to F with values of 50
// bytes and of 16 KiB, twelve cells, on EdgeCase and on the peers that were named; each cell is a
// run of ycsb-a … ycsb-f.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations of all cells. options.value_size: that of the two sizes alone; options.num: records
// and operations of each cell. A peer that is not built in is told of as not installed and left
// out. Cancelled on Ctrl-C.
Result<Report> run_ycsb_table(const BenchOptions& options);

}  // namespace edgecase::cli::bench
