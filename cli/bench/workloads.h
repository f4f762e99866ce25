// Every workload of `edgecase bench`, by name.
#pragma once

#include <span>
#include <string>

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

struct Workload {
  const char* name;
  const char* operation;  // what is counted, in the plural
  const char* purpose;
  Result<Report> (*run)(const BenchOptions& options);
};

std::span<const Workload> workloads();
const Workload* find_workload(const std::string& name);  // null if there is none

}  // namespace edgecase::cli::bench
