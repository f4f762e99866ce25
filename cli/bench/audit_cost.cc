// audit: what the audit log costs a durable daemon. Line protocol, one line a request, reads of the
// newest readings of a device, and both mixed half and half on hot devices (YCSB's workload A), by
// 1, 16 and 64 clients, with audit.mode off, batched and strict, taking turns.
#include "bench/workloads.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "bench/daemon_comparison.h"
#include "bench/line_load.h"
#include "bench/process_usage.h"
#include "bench/ycsb_numbers.h"
#include "edgecase/random.h"
#include "wire/routes.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::array kModes = {"off", "batched", "strict"};
constexpr std::uint64_t kUsualRequests = 200'000;  // at most; kAuditSeconds ends a load
constexpr std::uint64_t kSmokeRequests = 50;
constexpr double kAuditSeconds = 1;
constexpr std::uint32_t kRounds = 5;
constexpr std::uint32_t kAuditDevices = 100;
constexpr std::size_t kReadingsRead = 2'000;
constexpr const char* kDatabase = "bench";

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

}  // namespace edgecase::cli::bench
