// The experiments of edgecase-bench-peers: those of the papers that EdgeCase is built from, figures
// for READMEs, and workloads of `edgecase bench` beside a server of another make. What each does
// stands at the head of its source.
#pragma once

#include <string>

#include "bench/workloads.h"

namespace edgecase::cli::bench {

// How this program runs a workload: as an experiment below, else as `edgecase bench` does. Null: no
// workload has this name.
RunWorkload* run_of(const std::string& workload);

// On stores. With peers or rounds each run is in a process of its own (compare()): they are
// called before there are threads.
RunWorkload run_ycsb;        // ycsb-a … ycsb-f, as options.workload says
RunWorkload run_ycsb_table;  // ycsb: a peer that is not built in is told of, and left out
RunWorkload run_tenants;
RunWorkload run_neighbour;
RunWorkload run_stall;
RunWorkload run_casedb;  // casedb-writes, -reads, -metadata, -coalescing, -amplification
RunWorkload run_casedb_drives;
RunWorkload run_table2;
RunWorkload run_logkv;
RunWorkload run_logkv_recovery;

// On private daemons and servers.
RunWorkload run_footprint;
RunWorkload run_gdprbench;
RunWorkload run_ttl_beside_redis;
RunWorkload run_ingest_http_beside_influx;

// All of them, and a report in options.out (papers.h).
RunWorkload run_papers;

}  // namespace edgecase::cli::bench
