// Options of `edgecase bench`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_store.h"

namespace edgecase::cli::bench {

struct BenchOptions {
  std::string workload;
  std::uint64_t num = 0;         // 0: the workload's own
  std::uint64_t operations = 0;  // after the fill, of workloads that begin with one; 0: num
  std::uint32_t value_size = 0;  // 0: the workload's own
  std::uint32_t key_size = 16;
  std::uint32_t batch = 0;    // 0: the workload's own
  std::uint32_t threads = 0;  // 0: the workload's own
  std::uint32_t devices = 0;  // of erase; 0: its own number
  bool sync = false;
  double seconds = 0;  // 0: until num is done
  double rate = 0;     // operations a second, of ycsb-* and neighbour; 0: as fast as it goes
  std::uint64_t seed = 1;
  std::uint32_t rounds = 0;        // runs of which the median counts; 0: the workload's own
  std::string metadata;            // where the private directories are made; empty: here
  std::string values;              // empty: inside the metadata one
  std::string out;                 // where `papers` puts its report
  std::string engine = kOwnStore;  // of workloads on a store
  std::vector<std::string> peers;  // measured too, taking turns
  std::uint64_t memory_bytes = 0;  // 0: the workload's own
  bool compression = false;        // of peers that have it
  double compression_ratio = 1;    // the share of a value's bytes that is random
  bool random_fill = false;        // what is read was written in random order
  bool at_once = false;            // read without waiting for flushes and compactions
  bool cold = false;               // page cache dropped before reading
  bool slope = false;              // again on ten times the data
  bool coalesce = true;            // of EdgeCase: small values in groups
  bool smoke = false;
  bool json = false;
  std::string json_file;  // where it goes; empty: standard output
  // Options of casedb-drives: what a drive costs, and how slow the slow one is made.
  double fast_price = 100;
  double slow_price = 70;
  double slow_mb_per_second = 100;
  double slow_sync_ms = 2;
  FileSystem* file_system = nullptr;  // of EdgeCase's own store; null: the machine's
  // What edgecase-bench-peers brings along; null: only EdgeCase's own engine can be measured.
  MakeStore* make_peer = nullptr;

  std::uint64_t num_or(std::uint64_t usual, std::uint64_t smoke_num) const {
    return num != 0 ? num : smoke ? smoke_num : usual;
  }
  std::uint32_t batch_or(std::uint32_t usual) const { return batch != 0 ? batch : usual; }
  std::uint32_t threads_or(std::uint32_t usual) const { return threads != 0 ? threads : usual; }
  std::uint32_t rounds_or(std::uint32_t usual) const {
    return rounds != 0 ? rounds : smoke ? 1 : usual;
  }
  std::uint32_t value_size_or(std::uint32_t usual) const {
    return value_size != 0 ? value_size : usual;
  }
  bool has_peer(const char* name) const {
    return std::find(peers.begin(), peers.end(), name) != peers.end();
  }
};

}  // namespace edgecase::cli::bench
