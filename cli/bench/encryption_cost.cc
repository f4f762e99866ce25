// encryption: what encryption costs a durable daemon, at rest, on the way, and both. Line protocol
// in large and in small requests, large values, and what was stored read back after a restart, over
// kept-alive TCP connections, by daemons of their own, taking turns.
#include "bench/workloads.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/daemon_comparison.h"
#include "bench/line_load.h"
#include "bench/process_usage.h"
#include "edgecase/random.h"
#include "wire/routes.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint32_t kLinesPerBatch = 1'000;
constexpr std::uint32_t kEncryptionFields = 10;
constexpr std::uint64_t kUsualBatches = 200;
constexpr std::uint64_t kSinglesPerBatch = 32;
constexpr std::uint64_t kReadsPerSingle = 4;
constexpr std::uint64_t kSmokeBatches = 3;
constexpr std::uint32_t kEncryptionClients = 16;
constexpr std::size_t kBlobBytes = 256u << 10;
constexpr const char* kEncryptionDatabase = "bench";

struct Variant {
  const char* name;
  bool at_rest;
  bool on_the_way;  // HTTP over TLS
};
constexpr std::array kVariants = {Variant{"clear", false, false}, Variant{"at_rest", true, false},
                                  Variant{"tls", false, true}, Variant{"both", true, true}};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Variant& variant : kVariants) all.emplace_back(variant.name);
  return all;
}

class EncryptionCost {
 public:
  explicit EncryptionCost(const BenchOptions& options) : options_(options) {
    SensorLineOptions lines;
    lines.lines_per_body = options.batch_or(kLinesPerBatch);
    const std::uint64_t batches = options.num_or(kUsualBatches, kSmokeBatches);
    lines.lines = batches * lines.lines_per_body;
    lines.fields = kEncryptionFields;
    lines.seed = options.seed;
    batches_ = make_write_requests(make_sensor_bodies(lines), kEncryptionDatabase);
    readings_ = lines.lines * kEncryptionFields;
    lines.lines = batches * kSinglesPerBatch;
    lines.lines_per_body = 1;
    lines.start_ns += 1'000'000'000'000;
    singles_ = make_write_requests(make_sensor_bodies(lines), kEncryptionDatabase);
    blobs_ = make_blobs(batches);
    // All of it, once; the answer is small.
    reads_ = {http_request("GET",
                           std::string(wire::routes::kQuery) + "?ns=" + kEncryptionDatabase +
                               "&select=node-*/*&every=1d&agg=mean&format=csv",
                           "", "")};
    small_reads_.assign(singles_.size() * kReadsPerSingle,
                        http_request("GET",
                                     std::string(wire::routes::kLast) +
                                         "?ns=" + kEncryptionDatabase + "&select=node-0/*",
                                     "", ""));
  }

  Result<Report> run() {
    const std::uint32_t rounds = options_.rounds_or(3);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      EC_TRY(comparison_.take_turns([this](std::size_t variant) { return measure(variant); }));
    }
    report_.workload = options_.workload;
    report_.value_size = 8;
    report_.threads = kEncryptionClients;
    report_.sync = true;
    report_.seed = options_.seed;
    comparison_.add_figures(report_);
    report_.more.emplace_back("rounds", rounds);
    return report_;
  }

 private:
  // Bytes that no codec makes smaller.
  std::vector<std::string> make_blobs(std::uint64_t count) const {
    SeededRandom random(options_.seed);
    std::vector<std::string> requests;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string body(kBlobBytes, '\0');
      for (char& byte : body) byte = static_cast<char>(random.next());
      requests.push_back(http_request("PUT",
                                      std::string(wire::routes::kBlob) + "/" + kEncryptionDatabase +
                                          "/camera/frame?time=@" +
                                          std::to_string(1'763'600'000 + i),
                                      "Content-Type: image/jpeg\r\n", body));
    }
    return requests;
  }

  Status measure(std::size_t variant) {
    DaemonOptions wanted;
    wanted.metadata_parent = options_.metadata;
    wanted.values_parent = options_.values;
    wanted.encrypted = kVariants[variant].at_rest;
    wanted.transport = kVariants[variant].on_the_way ? Transport::Tls : Transport::Tcp;
    EC_ASSIGN_OR_RETURN(const auto daemon, DaemonProcess::create(wanted));
    EC_TRY(daemon->start());
    EC_TRY(create_database(daemon->endpoint(), kEncryptionDatabase));
    const auto batch_readings =
        static_cast<double>(readings_) / static_cast<double>(batches_.size());
    EC_ASSIGN_OR_RETURN(
        const LoadResult batches,
        load(variant, *daemon, {"batch_readings", &batches_, 2, 0, batch_readings}));
    EC_TRY(
        load(variant, *daemon, {"single_requests", &singles_, kEncryptionClients, 0, 1}).status());
    EC_TRY(load(variant, *daemon, {"blob_mb", &blobs_, 2, 0, kBlobBytes / 1e6}).status());
    // What was in memory goes into tables, and caches are empty.
    daemon->stop();
    EC_TRY(daemon->start());
    const auto all_readings = static_cast<double>(readings_ + singles_.size() * kEncryptionFields);
    EC_TRY(load(variant, *daemon, {"read_readings", &reads_, 1, 0, all_readings}).status());
    EC_TRY(
        load(variant, *daemon, {"read_small", &small_reads_, kEncryptionClients, 0, 1}).status());
    if (variant != kVariants.size() - 1) return ok();
    report_.num = batches.requests;
    report_.seconds = batches.seconds;
    report_.user_bytes = batches.bytes;
    report_.latency = batches.latency;
    report_.peak_memory_bytes = usage_of(daemon->id()).peak_resident_bytes;
    return ok();
  }

  Result<LoadResult> load(std::size_t variant, const DaemonProcess& daemon,
                          const DaemonLoad& load) {
    EC_ASSIGN_OR_RETURN(const Endpoint endpoint, daemon.tcp_endpoint());
    return comparison_.measure(variant, daemon, endpoint, load);
  }

  const BenchOptions options_;
  std::vector<std::string> batches_, singles_, blobs_, reads_, small_reads_;
  std::uint64_t readings_ = 0;
  DaemonComparison comparison_{names()};
  Report report_;
};

}  // namespace

Result<Report> run_encryption_cost(const BenchOptions& options) {
  return EncryptionCost(options).run();
}

}  // namespace edgecase::cli::bench
