#include "bench/workloads.h"

#include "bench/audit_cost.h"
#include "bench/board.h"
#include "bench/casedb.h"
#include "bench/casedb_drives.h"
#include "bench/daemon_figures.h"
#include "bench/encryption_cost.h"
#include "bench/erase_devices.h"
#include "bench/gdprbench.h"
#include "bench/ingest_http.h"
#include "bench/ingest_listener.h"
#include "bench/ingest_mqtt.h"
#include "bench/interference.h"
#include "bench/logkv.h"
#include "bench/papers.h"
#include "bench/store_workloads.h"
#include "bench/table2.h"
#include "bench/ttl.h"
#include "bench/ycsb.h"
#include "bench/ycsb_table.h"

namespace edgecase::cli::bench {

std::span<const Workload> workloads() {
  static constexpr Workload kWorkloads[] = {
      {"fillseq", "puts", "write keys in order", run_store_workload},
      {"fillrandom", "puts", "write keys drawn at random", run_store_workload},
      {"overwrite", "puts", "write keys that are there, at random", run_store_workload},
      {"deleterandom", "deletes", "delete keys drawn at random", run_store_workload},
      {"readrandom", "gets", "read keys drawn at random", run_store_workload},
      {"hotkeys", "gets", "80 % of the gets mean 5 % of the keys, beside all alike",
       run_store_workload},
      {"readmissing", "gets", "read keys that are not there", run_store_workload},
      {"seekrandom", "entries", "read 100 in order from keys drawn at random", run_store_workload},
      {"readseq", "entries", "read everything in order", run_store_workload},
      {"ycsb-a", "operations", "half reads, half updates, hot keys", run_ycsb},
      {"ycsb-b", "operations", "95 % reads, 5 % updates, hot keys", run_ycsb},
      {"ycsb-c", "operations", "reads of hot keys", run_ycsb},
      {"ycsb-d", "operations", "95 % reads of the newest, 5 % inserts", run_ycsb},
      {"ycsb-e", "operations", "95 % short scans, 5 % inserts", run_ycsb},
      {"ycsb-f", "operations", "half reads, half read-modify-writes, hot keys", run_ycsb},
      {"ycsb", "operations", "all of them at 50 B and 16 KiB, beside the peers", run_ycsb_table},
      {"tenants", "gets", "eight tenants, apart and in one namespace", run_tenants},
      {"casedb-writes", "puts", "CaseDB paper: writes at every size", run_casedb},
      {"casedb-reads", "gets", "CaseDB paper: reads at every size, warm and cold", run_casedb},
      {"casedb-metadata", "puts", "CaseDB paper: bytes of metadata to bytes of values", run_casedb},
      {"casedb-coalescing", "puts", "CaseDB paper: small values in groups, and not", run_casedb},
      {"casedb-amplification", "puts", "CaseDB paper: 90 % updates", run_casedb},
      {"table2", "operations", "CaseDB paper: its table 2, a proof for each row", run_table2},
      {"casedb-drives", "operations", "CaseDB paper: metadata, values, or both on the fast drive",
       run_casedb_drives},
      {"logkv", "commands", "140 mixes of gets and puts, beside NaiveKV", run_logkv},
      {"logkv-recovery", "commands", "kill -9 while writing: what is left", run_logkv_recovery},
      {"stall", "puts", "every put timed while compactions run", run_stall},
      {"neighbour", "operations", "a tenant beside one that writes all it can", run_neighbour},
      {"ingest-http", "lines", "durable line protocol into a private daemon", run_ingest_http},
      {"ingest-mqtt", "messages", "QoS 1 through a private mosquitto", run_ingest_mqtt},
      {"ingest-listener", "messages", "QoS 1 straight into a private daemon", run_ingest_listener},
      {"audit", "requests", "what the audit log costs, off, batched and strict", run_audit_cost},
      {"encryption", "requests", "what encryption costs, at rest and on the way",
       run_encryption_cost},
      {"erase", "devices", "erase single devices: unreadable when, and gone when",
       run_erase_devices},
      {"ttl", "keys", "keys that expire: unreadable when, and gone when", run_ttl},
      {"gdprbench", "operations", "GDPRbench's roles, every answer checked", run_gdprbench},
      {"board", "readings and blobs", "sizes this board: sensors, images, video, days", run_board},
      {"query", "readings", "aggregate, list, and last, through a daemon", run_query_figures},
      {"footprint", "readings", "memory, start time, bytes a reading", run_footprint},
      {"papers", "experiments", "every experiment of the papers, and a report", run_papers},
      {"recovery", "entries", "open a store whose log is full", run_recovery},
  };
  return kWorkloads;
}

const Workload* find_workload(const std::string& name) {
  for (const Workload& workload : workloads()) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

}  // namespace edgecase::cli::bench
