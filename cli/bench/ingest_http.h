// ingest-http: durable line protocol into a private daemon, the stream of TSBS's trucks
// (truck_lines.h), 1,000 lines a request, two connections; with --peer influxdb the same requests
// also go to a private InfluxDB, taking turns.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// The run with the median rate; operations are lines.
Result<Report> run_ingest_http(const BenchOptions& options);

}  // namespace edgecase::cli::bench
