// Readings as sensors make them: slow random walks with one or two decimals, once a second, as
// Influx line protocol. The same seed gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace edgecase::cli::bench
