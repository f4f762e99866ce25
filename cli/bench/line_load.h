// Readings as Influx line protocol, made beforehand, and what sends them: over several keep-alive
// connections, waiting for every answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/histogram.h"
#include "bench/raw_connection.h"

namespace edgecase::cli::bench {

struct SensorLineOptions {
  std::uint64_t lines = 0;
  std::uint32_t lines_per_body = 1'000;
  std::uint32_t devices = 100;  // lines go round the devices; each round is one second
  std::uint32_t fields = 10;    // of one line
  std::uint64_t seed = 1;
  std::int64_t start_ns = 1'763'596'800'000'000'000;  // 2025-11-20T00:00:00Z
};

// One body after another; the caller takes them in turn.
std::vector<std::string> make_sensor_bodies(const SensorLineOptions& options);

struct LoadResult {
  double seconds = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;  // of the bodies
  Histogram latency;        // of a request
};

// POST /write?db=<database>, one a body.
std::vector<std::string> make_write_requests(const std::vector<std::string>& bodies,
                                             const std::string& database);

// Each request goes once, in order, to whichever connection is free. Every answer must be 2xx. With
// `seconds` above 0 it stops after them. `begin` is called once connections over TLS have agreed on
// their keys, before the first request. Cancelled on Ctrl-C.
Result<LoadResult> send_all(const Endpoint& endpoint, const std::vector<std::string>& requests,
                            std::uint32_t connections, double seconds,
                            const std::function<Status()>& begin = nullptr);

// Makes the database where the server wants that: POST /query?q=CREATE DATABASE.
Status create_database(const Endpoint& endpoint, const std::string& database);

}  // namespace edgecase::cli::bench
