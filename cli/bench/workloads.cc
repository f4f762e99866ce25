#include "bench/workloads.h"

namespace edgecase::cli::bench {

std::span<const Workload> workloads() {
  constexpr RunWorkload* kElsewhere = nullptr;
  static constexpr Workload kWorkloads[] = {
      {"board", "readings and blobs", "sizes this board: sensors, images, video, days", run_board},
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
      {"mixed", "operations", "half gets, half puts of keys that are there, at random",
       run_store_workload},
      {"ttl", "keys", "keys that expire: unreadable when, and gone when", run_ttl},
      {"erase", "devices", "erase single devices: unreadable when, and gone when",
       run_erase_devices},
      {"ingest-http", "lines", "durable line protocol into a private daemon", run_ingest_http},
      {"ingest-mqtt", "messages", "QoS 1 through a private mosquitto", run_ingest_mqtt},
      {"ingest-listener", "messages", "QoS 1 straight into a private daemon", run_ingest_listener},
      {"recovery", "entries", "open a store whose log is full", run_recovery},
      {"query", "readings", "windows, all, and the last one, asked of a private daemon", run_query},
      {"encryption", "requests", "what encryption costs, at rest and on the way",
       run_encryption_cost},
      {"audit", "requests", "what the audit log costs, off, batched and strict", run_audit_cost},
      {"footprint", "readings", "memory, start time, bytes a reading", kElsewhere},
      {"ycsb-a", "operations", "half reads, half updates, hot keys", kElsewhere},
      {"ycsb-b", "operations", "95 % reads, 5 % updates, hot keys", kElsewhere},
      {"ycsb-c", "operations", "reads of hot keys", kElsewhere},
      {"ycsb-d", "operations", "95 % reads of the newest, 5 % inserts", kElsewhere},
      {"ycsb-e", "operations", "95 % short scans, 5 % inserts", kElsewhere},
      {"ycsb-f", "operations", "half reads, half read-modify-writes, hot keys", kElsewhere},
      {"ycsb", "operations", "all of them at 50 B and 16 KiB, beside the peers", kElsewhere},
      {"tenants", "gets", "eight tenants, apart and in one namespace", kElsewhere},
      {"neighbour", "operations", "a tenant beside one that writes all it can", kElsewhere},
      {"stall", "puts", "every put timed while compactions run", kElsewhere},
      {"casedb-writes", "puts", "CaseDB paper: writes at every size", kElsewhere},
      {"casedb-reads", "gets", "CaseDB paper: reads at every size, warm and cold", kElsewhere},
      {"casedb-metadata", "puts", "CaseDB paper: bytes of metadata to bytes of values", kElsewhere},
      {"casedb-coalescing", "puts", "CaseDB paper: small values in groups, and not", kElsewhere},
      {"casedb-amplification", "puts", "CaseDB paper: 90 % updates", kElsewhere},
      {"casedb-drives", "operations", "CaseDB paper: metadata, values, or both on the fast drive",
       kElsewhere},
      {"table2", "operations", "CaseDB paper: its table 2, a proof for each row", kElsewhere},
      {"logkv", "commands", "140 mixes of gets and puts, beside NaiveKV", kElsewhere},
      {"logkv-recovery", "commands", "kill -9 while writing: what is left", kElsewhere},
      {"gdprbench", "operations", "GDPRbench's roles, every answer checked", kElsewhere},
      {"papers", "experiments", "every experiment of the papers, and a report", kElsewhere},
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
