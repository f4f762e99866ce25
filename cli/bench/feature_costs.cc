#include "bench/processes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/loads.h"
#include "bench/raw_connection.h"
#include "bench/workloads.h"
#include "edgecase/machine.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {
namespace {

struct Counts {
  ProcessUsage usage;
  double syncs = 0;
};

Result<Counts> counts_of(const DaemonProcess& daemon) {
  HttpClient client(daemon.endpoint());
  EC_ASSIGN_OR_RETURN(const std::string text, client.get(wire::routes::kStatus));
  const auto status = nlohmann::json::parse(text, nullptr, false);
  const auto syncs = nlohmann::json::json_pointer("/wal/syncs");
  if (!status.is_object() || !status.contains(syncs)) {
    return io_error("the daemon's status tells no syncs");
  }
  return Counts{usage_of(daemon.id()), status.at(syncs).get<double>()};
}

}  // namespace

DaemonComparison::DaemonComparison(std::vector<std::string> variants)
    : variants_(std::move(variants)) {}

Status DaemonComparison::take_turns(const std::function<Status(std::size_t)>& turn) {
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    EC_TRY(check_interrupt());
    EC_TRY(turn((first_ + i) % variants_.size()));
  }
  ++first_;
  return ok();
}

Result<LoadResult> DaemonComparison::measure(std::size_t variant, const DaemonProcess& daemon,
                                             const Endpoint& endpoint, const DaemonLoad& load) {
  Counts before;
  const auto begin = [&before, &daemon]() -> Status {
    EC_ASSIGN_OR_RETURN(before, counts_of(daemon));
    return ok();
  };
  EC_ASSIGN_OR_RETURN(LoadResult result,
                      send_all(endpoint, *load.requests, load.clients, load.seconds, begin));
  EC_ASSIGN_OR_RETURN(const Counts after, counts_of(daemon));
  const auto done = static_cast<double>(std::max<std::uint64_t>(result.requests, 1));
  const auto a_request = [done](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - std::min(from, to)) / done;
  };
  if (std::find(loads_.begin(), loads_.end(), load.name) == loads_.end())
    loads_.push_back(load.name);
  Measured& measured = measured_[{load.name, variant}];
  measured.rates.push_back(static_cast<double>(result.requests) * load.amount_per_request /
                           result.seconds);
  measured.cpu_us.push_back(a_request(before.usage.cpu_ns, after.usage.cpu_ns) / 1'000);
  measured.waits.push_back(a_request(before.usage.waits, after.usage.waits));
  measured.syncs.push_back((after.syncs - before.syncs) / done);
  return result;
}

const DaemonComparison::Measured& DaemonComparison::measured(const std::string& load,
                                                             std::size_t variant) const {
  static const Measured nothing;
  const auto found = measured_.find({load, variant});
  return found == measured_.end() ? nothing : found->second;
}

double DaemonComparison::rate(const std::string& load, std::size_t variant) const {
  return median(measured(load, variant).rates);
}

double DaemonComparison::ratio(const std::string& load, std::size_t variant) const {
  const std::vector<double>& first = measured(load, 0).rates;
  const std::vector<double>& other = measured(load, variant).rates;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
    if (first[i] > 0) ratios.push_back(other[i] / first[i]);
  }
  return median(std::move(ratios));
}

void DaemonComparison::add_figures(Report& report) const {
  for (const std::string& load : loads_) {
    for (std::size_t variant = 0; variant < variants_.size(); ++variant) {
      const std::string name = load + "_" + variants_[variant];
      report.more.emplace_back(name + "_per_second", rate(load, variant));
      if (variant != 0) report.more.emplace_back(name + "_ratio", ratio(load, variant));
      report.more.emplace_back(name + "_cpu_us", median(measured(load, variant).cpu_us));
      report.more.emplace_back(name + "_syncs", median(measured(load, variant).syncs));
      report.more.emplace_back(name + "_waits", median(measured(load, variant).waits));
    }
  }
}

namespace {

constexpr std::array kModes = {"off", "batched", "strict"};
constexpr std::uint64_t kUsualRequests = 200'000;  // at most; kAuditSeconds ends a load
constexpr std::uint64_t kSmokeRequests = 50;
constexpr double kAuditSeconds = 1;
constexpr std::uint32_t kRounds = 5;
constexpr std::uint32_t kAuditDevices = 100;
constexpr std::size_t kReadingsRead = 2'000;
constexpr const char* kDatabase = "bench";

// audit: what the audit log costs a durable daemon. Line protocol, one line a request, reads of the
// newest readings of a device, and both mixed half and half on hot devices (YCSB's workload A), by
// 1, 16 and 64 clients, with audit.mode off, batched and strict, taking turns.
class AuditCost {
 public:
  explicit AuditCost(const BenchOptions& options)
      : options_(options), comparison_({kModes.begin(), kModes.end()}) {
    SensorLineOptions lines;
    lines.lines_per_body = options.batch_or(1);
    lines.lines = options.num_or(kUsualRequests, kSmokeRequests) * lines.lines_per_body;
    lines.devices = kAuditDevices;
    lines.seed = options.seed;
    writes_ = make_write_requests(make_sensor_bodies(lines), kDatabase);
    reads_.assign(writes_.size(), read_of(0));
    make_mix();
    clients_ = options.threads != 0 ? std::vector<std::uint32_t>{options.threads}
                                    : std::vector<std::uint32_t>{1, 16, 64};
  }

  Result<Report> run() {
    const std::uint32_t rounds = options_.rounds_or(kRounds);
    for (std::uint32_t round = 0; round < rounds; ++round) EC_TRY(run_round());
    report_.workload = options_.workload;
    report_.value_size = 8;
    report_.threads = clients_.back();
    report_.sync = true;
    report_.seed = options_.seed;
    comparison_.add_figures(report_);
    report_.more.emplace_back("rounds", rounds);
    return report_;
  }

 private:
  static std::string read_of(std::uint64_t device) {
    return http_request("GET",
                        std::string(wire::routes::kLast) + "?ns=" + kDatabase + "&select=node-" +
                            std::to_string(device) + "/*",
                        "", "");
  }

  void make_mix() {
    SeededRandom random(options_.seed);
    ScrambledZipfian zipfian(kAuditDevices);
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      if (random.below(2) == 0) {
        mix_.push_back(read_of(zipfian.next(random)));
        continue;
      }
      // Lines go round the devices.
      const std::size_t device = zipfian.next(random);
      const std::size_t at = i / kAuditDevices * kAuditDevices + device;
      mix_.push_back(writes_[at < writes_.size() ? at : i]);
    }
  }

  // A daemon for each mode; they take turns for each load.
  Status run_round() {
    std::vector<std::unique_ptr<DaemonProcess>> daemons(kModes.size());
    for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
      EC_ASSIGN_OR_RETURN(daemons[mode], start(kModes[mode]));
    }
    for (const auto& [kind, requests] :
         {std::pair("read", &reads_), std::pair("mix", &mix_), std::pair("ingest", &writes_)}) {
      for (const std::uint32_t clients : clients_) {
        DaemonLoad load{std::string(kind) + "_" + std::to_string(clients), requests, clients};
        load.seconds = options_.seconds > 0 ? options_.seconds : kAuditSeconds;
        const bool is_told = requests == &mix_ && clients == clients_.back();
        EC_TRY(comparison_.take_turns([&](std::size_t mode) -> Status {
          const DaemonProcess& daemon = *daemons[mode];
          EC_ASSIGN_OR_RETURN(const LoadResult result,
                              comparison_.measure(mode, daemon, daemon.endpoint(), load));
          if (is_told && mode == kModes.size() - 1) tell(result, daemon);
          return ok();
        }));
      }
    }
    return ok();
  }

  // Every mode reads the same: few readings, which no flush has reached yet.
  Result<std::unique_ptr<DaemonProcess>> start(const char* mode) {
    DaemonOptions wanted;
    wanted.metadata_parent = options_.metadata;
    wanted.values_parent = options_.values;
    wanted.audit_mode = mode;
    EC_ASSIGN_OR_RETURN(auto daemon, DaemonProcess::create(wanted));
    EC_TRY(daemon->start());
    EC_TRY(create_database(daemon->endpoint(), kDatabase));
    const std::vector<std::string> first(
        writes_.begin(),
        writes_.begin() + static_cast<std::ptrdiff_t>(std::min(writes_.size(), kReadingsRead)));
    EC_TRY(send_all(daemon->endpoint(), first, clients_.back(), 0).status());
    return daemon;
  }

  void tell(const LoadResult& result, const DaemonProcess& daemon) {
    report_.num = result.requests;
    report_.seconds = result.seconds;
    report_.user_bytes = result.bytes;
    report_.latency = result.latency;
    report_.peak_memory_bytes = usage_of(daemon.id()).peak_resident_bytes;
  }

  const BenchOptions options_;
  std::vector<std::string> writes_, reads_, mix_;
  std::vector<std::uint32_t> clients_;
  DaemonComparison comparison_;
  Report report_;
};

}  // namespace

Result<Report> run_audit_cost(const BenchOptions& options) {
  return AuditCost(options).run();
}

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

// encryption: what encryption costs a durable daemon, at rest, on the way, and both. Line protocol
// in large and in small requests, large values, and what was stored read back after a restart, over
// kept-alive TCP connections, by daemons of their own, taking turns.
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
