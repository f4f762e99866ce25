// ingest-http: durable line protocol into a private daemon, the stream of TSBS's trucks
// (truck_lines.h), 1,000 lines a request, two connections. edgecase-bench-peers sends the same
// requests to a private InfluxDB as well, taking turns.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "bench/bench_options.h"
#include "bench/raw_connection.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// A private server of another make; gone at the end of its scope.
class Server {
 public:
  virtual ~Server() = default;
  virtual Endpoint endpoint() const = 0;
  virtual pid_t id() const = 0;
};
// `parent` is where its directory is made. Unavailable when it is not installed.
using StartServer = Result<std::unique_ptr<Server>>(const std::string& parent);

// The run with the median rate; operations are lines. With `--peer influxdb` and `start_influx`,
// its figures and the ratio to it, too.
Result<Report> ingest_http_beside(StartServer* start_influx, const BenchOptions& options);

}  // namespace edgecase::cli::bench
