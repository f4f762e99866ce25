// One run of GDPRbench's roles on a daemon of its own: load, what must have expired, roles, space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

struct GdprFigures {
  struct Role {
    std::string name;
    double seconds = 0;       // to the last answer
    double gone_seconds = 0;  // from then until nothing of what was erased is left on the drives
  };
  double load_seconds = 0;
  double expired_ms = 0;  // from the instant until at most 90 % of the records could be read
  std::vector<Role> roles;
  std::uint64_t operations = 0;
  std::uint64_t right = 0;       // operations with nothing but right answers
  std::uint64_t repeats = 0;     // requests sent again, since the daemon was busy
  std::uint64_t digest = 0;      // of all operations: the same seed gives the same
  std::uint64_t user_bytes = 0;  // of the records that were loaded
  std::uint64_t stored_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  Histogram latency;    // of an operation
  std::string mistake;  // the first wrong answer; empty: none

  double correct_percent() const {
    return operations == 0 ? 0 : 100 * static_cast<double>(right) / static_cast<double>(operations);
  }
  double space_factor() const {
    return user_bytes == 0 ? 0
                           : static_cast<double>(stored_bytes) / static_cast<double>(user_bytes);
  }
  double seconds() const {
    double sum = 0;
    for (const Role& role : roles) sum += role.seconds;
    return sum;
  }
};

struct GdprSize {
  std::uint64_t records = 0;
  std::uint64_t operations = 0;  // of each role
  std::uint32_t clients = 1;
  std::uint32_t page = 1;
};

Result<GdprFigures> run_gdpr_roles(const BenchOptions& options, const GdprSize& size);

}  // namespace edgecase::cli::bench
