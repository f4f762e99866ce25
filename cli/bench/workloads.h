// Every workload of `edgecase bench`, by name, its options, and the store that it measures. What
// sizes a board runs in this executable; the experiments of the papers, and all that is measured
// beside a peer, run in edgecase-bench-peers (tests/bench/), which commands/bench_command.cc
// starts. What a workload does stands at the head of its source; what it measured is a Report,
// printed as text or JSON. `board` tells facts of the machine as well.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/status.h"

namespace edgecase {
class FileSystem;
}  // namespace edgecase

namespace edgecase::cli::bench {

// Latencies in buckets 1/64 of their size wide: percentiles to 2 %, whatever their range. One
// thread each; merge at the end.
class Histogram {
 public:
  void add(std::uint64_t ns) {
    ++counts_[bucket_of(ns)];
    ++count_;
    if (ns > max_) max_ = ns;
  }
  // Something took this long, but is not counted.
  void note_max(std::uint64_t ns) {
    if (ns > max_) max_ = ns;
  }
  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }

  std::uint64_t count() const { return count_; }
  std::uint64_t max_ns() const { return max_; }
  // The smallest bucket's upper end that at least this share (0 to 1) lies within.
  std::uint64_t percentile_ns(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (counts_[i] != 0 && seen >= wanted) return end_of(i) < max_ ? end_of(i) : max_;
    }
    return max_;
  }

 private:
  static constexpr unsigned kFineBits = 6;
  static constexpr std::size_t kFine = std::size_t{1} << kFineBits;
  static constexpr std::size_t kBuckets = (64 - kFineBits + 1) * kFine;

  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < kFine) return ns;
    const auto shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kFineBits;
    return (shift + 1) * kFine + ((ns >> shift) - kFine);
  }
  static std::uint64_t end_of(std::size_t bucket) {
    if (bucket < kFine) return bucket;
    const std::size_t shift = bucket / kFine - 1;
    return ((kFine + bucket % kFine + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

// The middle of some measurements; of an even number the lower of the two. 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

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

inline constexpr const char* kOwnStore = "edgecase";
// Stores of edgecase-bench-peers; "naive-…" and "unordered-map" are the LogKV paper's.
inline constexpr const char* kPeerStores[] = {"leveldb",   "rocksdb",      "rocksdb-blob",
                                              "naive-32k", "naive-1m",     "naive-2m",
                                              "naive-32m", "unordered-map"};

// The same for every store, as far as it has such a thing.
struct StoreSettings {
  std::string metadata_directory;
  std::string values_directory;
  // An eighth of it is a write buffer, a fifth a cache.
  std::uint64_t memory_bytes = 64u << 20;
  bool compression = false;
  bool coalesce = true;               // of EdgeCase
  std::uint32_t spaces = 1;           // namespaces; a peer has one
  FileSystem* file_system = nullptr;  // of EdgeCase; null: the machine's
};

// Puts and deletes written together. `space` counts from 0.
class BenchBatch {
 public:
  virtual ~BenchBatch() = default;
  virtual void put(std::uint32_t space, ByteView key, ByteView value) = 0;
  virtual void remove(std::uint32_t space, ByteView key) = 0;
  virtual void clear() = 0;
};

using Visit = std::function<bool(ByteView key, ByteView value)>;
using Figures = std::vector<std::pair<std::string, double>>;

// A key-value store under measurement: EdgeCase's engine, or a peer that edgecase-bench-peers
// brings along (tests/bench/peers/). Thread-safe; a batch belongs to one thread.
class BenchStore {
 public:
  virtual ~BenchStore() = default;
  virtual std::unique_ptr<BenchBatch> make_batch() = 0;
  virtual Status write(BenchBatch& batch, bool sync) = 0;
  // NotFound when there is none.
  virtual Result<Bytes> get(std::uint32_t space, ByteView key) = 0;
  // Every entry from `lower` on, in order, until `visit` answers false.
  virtual Status scan(ByteView lower, const Visit& visit) = 0;
  // Everything written out of memory and log; compactions may go on.
  virtual Status flush() = 0;
  // Handed to the drives since open, logs included.
  virtual std::uint64_t device_bytes_written() const = 0;
  // More to report, of this store alone.
  virtual Figures figures() const { return {}; }
};

using MakeStore = Result<std::unique_ptr<BenchStore>>(const std::string& name,
                                                      const StoreSettings& settings);

Result<std::unique_ptr<BenchStore>> make_own_store(const StoreSettings& settings);

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

// With rounds, each run of a workload on a store is a child process (compare()).
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

// Runs a workload on EdgeCase's engine and its peers by turns, each time in a process of its own.

// What the figures of a peer begin with, among `more`: "rocksdb_blob_" of "rocksdb-blob".
std::string figure_prefix_of(std::string peer);

// The report of the median round of options.engine, with the medians of each peer and the ratio to
// it among `more`. `run` measures options.engine once; without peers and for one round it is called
// here, else in forked children: call it before there are threads.
Result<Report> compare(const BenchOptions& options,
                       const std::function<Result<Report>(const BenchOptions&)>& run);

// Facts of a board: its model, and how fast a drive takes and gives bytes.

struct Machine {
  std::string model;  // of the device tree, else of DMI, else "unknown"
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
};

// `root` stands before /proc and /sys: empty but in tests.
Machine look_at_machine(const std::string& root);

struct DriveFigures {
  std::string place;  // "/dev/nvme0n1p1, ext4"
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  double sync_p50_us = 0;  // of 4 KiB written and made durable
  double sync_p99_us = 0;
  double write_mb_per_second = 0;  // 10^6 bytes, in order, durable in the end
  double read_mb_per_second = 0;   // back, not from the page cache where the kernel drops it
};

// Measures with `bytes` in a file in `directory`, which is gone afterwards, and `syncs` syncs.
// Errors: IoError, OutOfSpace, Cancelled.
Result<DriveFigures> measure_drive(const std::string& directory, std::uint64_t bytes, int syncs);

}  // namespace edgecase::cli::bench
