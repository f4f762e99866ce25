#include "bench/encryption_cost.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "bench/daemon_process.h"
#include "bench/line_load.h"
#include "bench/median.h"
#include "bench/process_usage.h"
#include "bench/sensor_lines.h"
#include "edgecase/random.h"
#include "wire/routes.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint32_t kLinesPerBatch = 1'000;
constexpr std::uint32_t kFields = 10;
constexpr std::uint64_t kUsualBatches = 400;
constexpr std::uint64_t kSmokeBatches = 3;
constexpr std::uint32_t kClients = 16;
constexpr std::size_t kBlobBytes = 256u << 10;
constexpr const char* kDatabase = "bench";

enum class Drives : unsigned char { Clear, Encrypted };
constexpr std::array kDrives = {Drives::Clear, Drives::Encrypted};

const char* name_of(Drives drives) {
  return drives == Drives::Clear ? "clear" : "encrypted";
}

class EncryptionCost {
 public:
  explicit EncryptionCost(const BenchOptions& options) : options_(options) {
    SensorLineOptions lines;
    lines.lines_per_body = options.batch_or(kLinesPerBatch);
    const std::uint64_t batches = options.num_or(kUsualBatches, kSmokeBatches);
    lines.lines = batches * lines.lines_per_body;
    lines.fields = kFields;
    lines.seed = options.seed;
    batches_ = make_write_requests(make_sensor_bodies(lines), kDatabase);
    readings_ = lines.lines * kFields;
    lines.lines = batches * kClients;
    lines.lines_per_body = 1;
    lines.start_ns += 1'000'000'000'000;
    singles_ = make_write_requests(make_sensor_bodies(lines), kDatabase);
    blobs_ = make_blobs(batches);
    // All of it, once; the answer is small.
    reads_ = {http_request("GET",
                           std::string(wire::routes::kQuery) + "?ns=" + kDatabase +
                               "&select=node-*/*&every=1d&agg=mean&format=csv",
                           "", "")};
  }

  Result<Report> run() {
    const std::uint32_t rounds = options_.rounds_or(3);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < kDrives.size(); ++i)
        EC_TRY(measure(kDrives[(i + round) % kDrives.size()]));
    }
    report_.workload = options_.workload;
    report_.value_size = 8;
    report_.threads = kClients;
    report_.sync = true;
    report_.seed = options_.seed;
    for (const char* kind : {"batch_readings", "single_requests", "blob_mb", "read_readings"}) {
      const double clear = median(rates_[kind][Drives::Clear]);
      const double encrypted = median(rates_[kind][Drives::Encrypted]);
      report_.more.emplace_back(std::string(kind) + "_clear_per_second", clear);
      report_.more.emplace_back(std::string(kind) + "_encrypted_per_second", encrypted);
      report_.more.emplace_back(std::string(kind) + "_ratio", encrypted / clear);
    }
    for (const Drives drives : kDrives)
      report_.more.emplace_back(std::string("batch_cpu_us_a_request_") + name_of(drives),
                                median(cpu_us_[drives]));
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
                                      std::string(wire::routes::kBlob) + "/" + kDatabase +
                                          "/camera/frame?time=@" +
                                          std::to_string(1'763'600'000 + i),
                                      "Content-Type: image/jpeg\r\n", body));
    }
    return requests;
  }

  Status measure(Drives drives) {
    DaemonOptions wanted;
    wanted.metadata_parent = options_.metadata;
    wanted.values_parent = options_.values;
    wanted.encrypted = drives == Drives::Encrypted;
    EC_ASSIGN_OR_RETURN(const auto daemon, DaemonProcess::create(wanted));
    EC_TRY(daemon->start());
    EC_TRY(create_database(daemon->endpoint(), kDatabase));
    const std::uint64_t cpu_before_ns = usage_of(daemon->id()).cpu_ns;
    EC_ASSIGN_OR_RETURN(const LoadResult batches, send_all(daemon->endpoint(), batches_, 2, 0));
    cpu_us_[drives].push_back(static_cast<double>(usage_of(daemon->id()).cpu_ns - cpu_before_ns) /
                              1'000 / static_cast<double>(batches.requests));
    note("batch_readings", drives, static_cast<double>(readings_), batches);
    EC_ASSIGN_OR_RETURN(const LoadResult singles,
                        send_all(daemon->endpoint(), singles_, kClients, 0));
    note("single_requests", drives, static_cast<double>(singles.requests), singles);
    EC_ASSIGN_OR_RETURN(const LoadResult blobs, send_all(daemon->endpoint(), blobs_, 2, 0));
    note("blob_mb", drives, static_cast<double>(blobs_.size() * kBlobBytes) / 1e6, blobs);
    // What was in memory goes into tables, and caches are empty.
    daemon->stop();
    EC_TRY(daemon->start());
    EC_ASSIGN_OR_RETURN(const LoadResult reads, send_all(daemon->endpoint(), reads_, 1, 0));
    note("read_readings", drives, static_cast<double>(readings_ + singles_.size() * kFields),
         reads);
    if (drives != Drives::Encrypted) return ok();
    report_.num = batches.requests;
    report_.seconds = batches.seconds;
    report_.user_bytes = batches.bytes;
    report_.latency = batches.latency;
    report_.peak_memory_bytes = usage_of(daemon->id()).peak_resident_bytes;
    return ok();
  }

  void note(const char* kind, Drives drives, double amount, const LoadResult& load) {
    rates_[kind][drives].push_back(amount / load.seconds);
  }

  const BenchOptions options_;
  std::vector<std::string> batches_, singles_, blobs_, reads_;
  std::uint64_t readings_ = 0;
  std::map<std::string, std::map<Drives, std::vector<double>>> rates_;
  std::map<Drives, std::vector<double>> cpu_us_;
  Report report_;
};

}  // namespace

Result<Report> run_encryption_cost(const BenchOptions& options) {
  return EncryptionCost(options).run();
}

}  // namespace edgecase::cli::bench
