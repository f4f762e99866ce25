// ingest-mqtt: QoS 1 publishers through a private mosquitto into a private daemon, until the daemon
// has stored every message; beside it a paho subscriber that stores nothing, at QoS 0 and 1,
// and at 1 with the window that the daemon has.
#pragma once

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Medians over the rounds; operations are messages. Unavailable without mosquitto.
Result<Report> run_ingest_mqtt(const BenchOptions& options);

}  // namespace edgecase::cli::bench
