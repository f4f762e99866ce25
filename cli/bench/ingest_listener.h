// ingest-listener: QoS 1 publishers straight into a private daemon, everything acknowledged, that
// is, durable. First with pipelining (--batch messages on their way, of each of --threads
// publishers), then one publisher that waits for each acknowledgement, taking turns with plain
// fdatasync on the same drive, which is what a durable acknowledgement cannot be faster than.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Medians over the rounds; operations are messages, latencies those of the publisher that waits.
Result<Report> run_ingest_listener(const BenchOptions& options);

}  // namespace edgecase::cli::bench
