// erase: devices of a full store are erased one after another. How long the readings of each can
// still be read, how long its bytes are still on the drives, and what that writes.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Operations are devices erased. In this process, on the engine; `num` readings are put before, of
// all devices by turns (random_fill: in any order), and merged (at_once: they are still being).
Result<Report> run_erase_devices(const BenchOptions& options);

}  // namespace edgecase::cli::bench
