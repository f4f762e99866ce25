// Figures of a running daemon that are no rates of a load:
//   query      one million readings of one sensor: an aggregate's rate and first row, `last`
//   footprint  start time, memory idle and after ten million readings, bytes a reading on disk
//   recovery   opening a store whose write-ahead log holds all that was not flushed and could not
//   be
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are readings decoded.
Result<Report> run_query_figures(const BenchOptions& options);
// Operations are readings written.
Result<Report> run_footprint(const BenchOptions& options);
// Operations are entries replayed.
Result<Report> run_recovery(const BenchOptions& options);

}  // namespace edgecase::cli::bench
