// gdprbench: the roles of GDPRbench on a private daemon over HTTP, every answer compared with a
// model; and what all features of protection cost together.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are those of all roles. With BenchOptions::slope the same again on ten times the
// records, and ratios. InvalidArgument: more records than numbers of 32 bits.
Result<Report> run_gdprbench(const BenchOptions& options);

}  // namespace edgecase::cli::bench
