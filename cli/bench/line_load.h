// Sends prepared line-protocol requests over several keep-alive connections and waits for every
// answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/histogram.h"
#include "bench/raw_connection.h"

namespace edgecase::cli::bench {

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
