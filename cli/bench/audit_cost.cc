#include "bench/audit_cost.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "bench/daemon_process.h"
#include "bench/line_load.h"
#include "bench/median.h"
#include "bench/process_usage.h"
#include "bench/sensor_lines.h"
#include "wire/routes.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::array kModes = {"off", "batched", "strict"};
constexpr std::uint64_t kUsualRequests = 200'000;  // at most; kSeconds ends a run
constexpr std::uint64_t kSmokeRequests = 50;
constexpr double kSeconds = 2;
constexpr std::size_t kReadingsRead = 2'000;
constexpr const char* kDatabase = "bench";

class AuditCost {
 public:
  explicit AuditCost(const BenchOptions& options) : options_(options) {
    SensorLineOptions lines;
    lines.lines_per_body = options.batch_or(1);
    lines.lines = options.num_or(kUsualRequests, kSmokeRequests) * lines.lines_per_body;
    lines.seed = options.seed;
    writes_ = make_write_requests(make_sensor_bodies(lines), kDatabase);
    reads_.assign(writes_.size(), http_request("GET",
                                               std::string(wire::routes::kLast) +
                                                   "?ns=" + kDatabase + "&select=node-0/*",
                                               "", ""));
    clients_ = options.threads != 0 ? std::vector<std::uint32_t>{options.threads}
                                    : std::vector<std::uint32_t>{1, 16, 64};
  }

  Result<Report> run() {
    const std::uint32_t rounds = options_.rounds_or(3);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      // Each mode comes first once in a while: what else the machine does costs none of them more.
      for (std::size_t i = 0; i < kModes.size(); ++i) {
        EC_TRY(measure(kModes[(i + round) % kModes.size()]));
      }
    }
    report_.workload = options_.workload;
    report_.value_size = 8;
    report_.threads = clients_.back();
    report_.sync = true;
    report_.seed = options_.seed;
    for (const char* kind : {"ingest", "read"}) {
      for (const std::uint32_t clients : clients_) {
        const double off = median(rates_[name_of(kind, "off", clients)]);
        for (const char* mode : kModes) {
          const std::string name = name_of(kind, mode, clients);
          const double rate = median(rates_[name]);
          report_.more.emplace_back(name + "_per_second", rate);
          if (mode != kModes[0]) report_.more.emplace_back(name + "_ratio", rate / off);
          // Of the daemon: what else the machine does changes it less than the rate.
          report_.more.emplace_back(name + "_cpu_us", median(cpu_us_[name]));
        }
      }
    }
    report_.more.emplace_back("rounds", rounds);
    return report_;
  }

 private:
  static std::string name_of(const std::string& kind, const std::string& mode,
                             std::uint32_t clients) {
    return kind + "_" + mode + "_" + std::to_string(clients);
  }

  Status measure(const char* mode) {
    DaemonOptions wanted;
    wanted.metadata_parent = options_.metadata;
    wanted.values_parent = options_.values;
    wanted.audit_mode = mode;
    EC_ASSIGN_OR_RETURN(const auto daemon, DaemonProcess::create(wanted));
    EC_TRY(daemon->start());
    EC_TRY(create_database(daemon->endpoint(), kDatabase));
    // Every mode reads the same: few readings, which no flush has reached yet.
    const std::vector<std::string> first(
        writes_.begin(),
        writes_.begin() + static_cast<std::ptrdiff_t>(std::min(writes_.size(), kReadingsRead)));
    EC_TRY(send_all(daemon->endpoint(), first, clients_.back(), 0).status());
    for (const std::uint32_t clients : clients_) {
      EC_TRY(load(*daemon, name_of("read", mode, clients), reads_, clients).status());
    }
    for (const std::uint32_t clients : clients_) {
      EC_ASSIGN_OR_RETURN(const LoadResult stored,
                          load(*daemon, name_of("ingest", mode, clients), writes_, clients));
      if (mode != kModes.back() || clients != clients_.back()) continue;
      report_.num = stored.requests;
      report_.seconds = stored.seconds;
      report_.user_bytes = stored.bytes;
      report_.latency = stored.latency;
      report_.peak_memory_bytes = usage_of(daemon->id()).peak_resident_bytes;
    }
    return ok();
  }

  Result<LoadResult> load(const DaemonProcess& daemon, const std::string& name,
                          const std::vector<std::string>& requests, std::uint32_t clients) {
    const double seconds = options_.seconds > 0 ? options_.seconds : kSeconds;
    const std::uint64_t cpu_before_ns = usage_of(daemon.id()).cpu_ns;
    EC_ASSIGN_OR_RETURN(LoadResult load, send_all(daemon.endpoint(), requests, clients, seconds));
    const auto done = static_cast<double>(load.requests);
    rates_[name].push_back(done / load.seconds);
    const std::uint64_t cpu_ns = usage_of(daemon.id()).cpu_ns - cpu_before_ns;
    cpu_us_[name].push_back(static_cast<double>(cpu_ns) / 1'000 / done);
    return load;
  }

  const BenchOptions options_;
  std::vector<std::string> writes_, reads_;
  std::vector<std::uint32_t> clients_;
  std::map<std::string, std::vector<double>> rates_, cpu_us_;
  Report report_;
};

}  // namespace

Result<Report> run_audit_cost(const BenchOptions& options) {
  return AuditCost(options).run();
}

}  // namespace edgecase::cli::bench
