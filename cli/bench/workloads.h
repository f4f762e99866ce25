// Every workload of `edgecase bench`, by name. What sizes a board runs in this executable; the
// experiments of the papers, and all that is measured beside a peer, run in edgecase-bench-peers
// (tests/bench/), which commands/bench_command.cc starts. What a workload does stands at the head
// of its source.
#pragma once

#include <span>
#include <string>

#include "bench/bench_options.h"
#include "bench/report.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// Errors of each: the engine's, those of directories and servers, InvalidArgument where the options
// ask for what it cannot do, Cancelled on Ctrl-C.
using RunWorkload = Result<Report>(const BenchOptions& options);

struct Workload {
  const char* name;
  const char* operation;  // what is counted, in the plural
  const char* purpose;
  RunWorkload* run;  // null: edgecase-bench-peers has it
};

std::span<const Workload> workloads();
const Workload* find_workload(const std::string& name);  // null if there is none

// What edgecase-bench-peers brings along.
struct PeerProgram {
  MakeStore* make_store;
  // How it runs a workload: its own way, or the one above.
  RunWorkload* (*run_of)(const std::string& workload);
};

// With rounds, each run of a workload on a store is a child process (comparison.h).
RunWorkload run_store_workload;
RunWorkload run_ttl;
RunWorkload run_erase_devices;
RunWorkload run_ingest_http;
RunWorkload run_ingest_mqtt;
RunWorkload run_ingest_listener;
RunWorkload run_audit_cost;
RunWorkload run_encryption_cost;
RunWorkload run_recovery;
RunWorkload run_query;
RunWorkload run_board;

}  // namespace edgecase::cli::bench
