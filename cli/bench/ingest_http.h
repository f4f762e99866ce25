// ingest-http: durable line protocol into a private daemon, the stream of TSBS's trucks
// (below), 1,000 lines a request, two connections. edgecase-bench-peers sends the same
// requests to a private InfluxDB as well, taking turns.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/raw_connection.h"
#include "bench/workloads.h"
#include "edgecase/status.h"

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

struct TruckLineOptions {
  std::uint64_t lines = 0;
  std::uint32_t lines_per_body = 1'000;
  std::uint32_t trucks = 100;
  std::uint64_t seed = 1;
  std::int64_t start_ns = 1'763'596'800'000'000'000;  // 2025-11-20T00:00:00Z
};

// The stream of TSBS's IoT use case as Influx line protocol: trucks that tell every ten seconds
// where they are (`readings`) and how they are (`diagnostics`), over links that lose lines, delay
// them and let single values go missing. The same seed gives the same bytes.
//
// As there, lines are drawn ten at a time, all trucks' readings of an instant and then all their
// diagnostics: of these batches 1 % is missing and 5 % wait, each to come back in the place of a
// later batch with a chance of one half; of a batch's first ten lines a tenth is missing and 30 %
// of the others wait, to come back likewise, and then perhaps be missing or wait again; a tenth of
// the others lacks one field, and 1 % a tag. What counts as a number there (capacities) is a field.
// Values walk within the same bounds by steps of the same size, with as many digits.
struct TruckLines {
  std::vector<std::string> bodies;
  std::uint64_t fields = 0;  // of all lines
  std::uint64_t drawn = 0;   // lines that there would be if none were missing, late ones included
};

TruckLines make_truck_lines(const TruckLineOptions& options);

}  // namespace edgecase::cli::bench
