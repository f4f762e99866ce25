// casedb-drives: the CaseDB paper's figure 10f. The same load with metadata and values on a slow
// drive, with one of them on a fast drive, and with both there.
//
// Load: `num` puts at random, 40 % of them of 50 bytes and the others of 4 KiB (--value-size), in
// durable batches of 16 (--batch), everything written out; then a fifth as many gets of what is
// there, with nothing in memory. Metadata of EdgeCase is keys, filters, indexes and the log.
//
// Drives: options.metadata is a directory on the fast drive and options.values one on the slow
// drive. Without options.values both lie in one, and EdgeCase sees one of them through a
// SlowFileSystem (slow_file_system.h); `drives` of the report says which it was.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations of the row with metadata alone on the fast drive; medians of the rounds (3) of each
// row, which take turns. Peers know one directory: they have no such row, and are left out where a
// drive is made slow within EdgeCase. Errors also: two names of one directory, a directory with a
// store, no room. Cancelled on Ctrl-C.
Result<Report> run_casedb_drives(const BenchOptions& options);

}  // namespace edgecase::cli::bench
