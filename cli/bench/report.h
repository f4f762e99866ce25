// The figures that a workload measured, printed as text or JSON (CONTRACT section 8).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/histogram.h"

namespace edgecase::cli::bench {

struct Report {
  std::string workload;
  std::string engine = "edgecase";
  std::uint64_t num = 0;  // operations done
  std::uint64_t value_size = 0;
  std::uint32_t threads = 1;
  bool sync = false;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::uint64_t user_bytes = 0;  // keys and values, or bodies, in or out
  Histogram latency;
  double write_amplification = 0;  // 0: nothing was written
  double space_amplification = 0;
  std::uint64_t peak_memory_bytes = 0;
  // More figures of single workloads, in order: name and value.
  std::vector<std::pair<std::string, double>> more;
  // A table in words: its first row names the columns.
  std::vector<std::vector<std::string>> rows;
  // What is said in words: name and text.
  std::vector<std::pair<std::string, std::string>> words;
  // Lines that people see instead of `more`; empty: they see that.
  std::string table;

  double ops_per_second() const { return seconds > 0 ? static_cast<double>(num) / seconds : 0; }
  // 0 where there is none.
  double figure(const std::string& name) const {
    for (const auto& [known, value] : more) {
      if (known == name) return value;
    }
    return 0;
  }
  double mb_per_second() const {
    return seconds > 0 ? static_cast<double>(user_bytes) / seconds / 1e6 : 0;
  }
};

// One JSON object; or lines for people, with the unit `operation` ("puts", "lines").
std::string report_json(const Report& report);
std::string report_text(const Report& report, const std::string& operation);

}  // namespace edgecase::cli::bench
