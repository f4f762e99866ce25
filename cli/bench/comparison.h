// Runs a workload on EdgeCase's engine and its peers by turns, each time in a process of its own.
#pragma once

#include <functional>
#include <string>

#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// What the figures of a peer begin with, among `more`: "rocksdb_blob_" of "rocksdb-blob".
std::string figure_prefix_of(std::string peer);

// The report of the median round of options.engine, with the medians of each peer and the ratio to
// it among `more`. `run` measures options.engine once; without peers and for one round it is called
// here, else in forked children: call it before there are threads.
Result<Report> compare(const BenchOptions& options,
                       const std::function<Result<Report>(const BenchOptions&)>& run);

}  // namespace edgecase::cli::bench
