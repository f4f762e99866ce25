#include "bench/experiments/experiments.h"

#include "bench/loads.h"
#include "bench/peers/influx_process.h"

namespace edgecase::cli::bench {

RunWorkload* run_of(const std::string& workload) {
  struct Experiment {
    const char* name;
    RunWorkload* run;
  };
  static constexpr Experiment kExperiments[] = {
      {"ycsb-a", run_ycsb},
      {"ycsb-b", run_ycsb},
      {"ycsb-c", run_ycsb},
      {"ycsb-d", run_ycsb},
      {"ycsb-e", run_ycsb},
      {"ycsb-f", run_ycsb},
      {"ycsb", run_ycsb_table},
      {"tenants", run_tenants},
      {"neighbour", run_neighbour},
      {"stall", run_stall},
      {"casedb-writes", run_casedb},
      {"casedb-reads", run_casedb},
      {"casedb-metadata", run_casedb},
      {"casedb-coalescing", run_casedb},
      {"casedb-amplification", run_casedb},
      {"casedb-drives", run_casedb_drives},
      {"table2", run_table2},
      {"logkv", run_logkv},
      {"logkv-recovery", run_logkv_recovery},
      {"footprint", run_footprint},
      {"gdprbench", run_gdprbench},
      {"ttl", run_ttl_beside_redis},
      {"ingest-http", run_ingest_http_beside_influx},
      {"papers", run_papers},
  };
  for (const Experiment& experiment : kExperiments) {
    if (workload == experiment.name) return experiment.run;
  }
  const Workload* const own = find_workload(workload);
  return own == nullptr ? nullptr : own->run;
}

Result<Report> run_ingest_http_beside_influx(const BenchOptions& options) {
  return ingest_http_beside(start_influx, options);
}

}  // namespace edgecase::cli::bench
