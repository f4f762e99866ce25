// The experiments of the LogKV paper: its mixes of commands beside NaiveKV (logkv.cc), and what is
// left after a kill (logkv_recovery.cc).
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Each run in a process of its own: call them before there are threads. Cancelled on Ctrl-C.
Result<Report> run_logkv(const BenchOptions& options);
Result<Report> run_logkv_recovery(const BenchOptions& options);

}  // namespace edgecase::cli::bench
