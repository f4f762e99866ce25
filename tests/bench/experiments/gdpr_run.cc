#include "bench/experiments/gdpr_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/experiments/gdpr_client.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "edgecase/machine.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
namespace routes = wire::routes;

constexpr std::uint64_t kRunRecordsPerRequest = 1'000;
constexpr std::uint64_t kRecordsPerPart = 20'000;  // made and sent at a time: they take memory here
constexpr std::uint32_t kLoadConnections = 2;
constexpr std::int64_t kRunSecondNs = 1'000'000'000;
// How old the shortest-lived records are when they are loaded in a smoke test.
constexpr std::int64_t kSmokeAgeNs = 28 * kRunSecondNs;
constexpr double kExpiredWithinSeconds = 60;

double run_seconds(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

class GdprRun {
 public:
  GdprRun(const BenchOptions& options, const GdprSize& size)
      : options_(options), size_(size), model_(size.records, size.records + size.operations) {}

  Result<GdprFigures> run() {
    DaemonOptions wanted;
    wanted.metadata_parent = options_.metadata;
    wanted.values_parent = options_.values;
    wanted.devices = size_.records + size_.operations;
    EC_ASSIGN_OR_RETURN(daemon_, DaemonProcess::create(wanted));
    EC_TRY(daemon_->start());
    target_ = {daemon_->endpoint(), "", size_.page};
    EC_TRY(prepare());
    EC_TRY(load());
    EC_TRY(verify_expiry());
    EC_TRY(weigh());
    std::uint64_t seed = options_.seed;
    for (const GdprRole& role : gdpr_roles()) EC_TRY(play(role, ++seed));
    figures_.peak_memory_bytes =
        std::max(figures_.peak_memory_bytes, usage_of(daemon_->id()).peak_resident_bytes);
    return std::move(figures_);
  }

 private:
  Status must(const char* method, const std::string& path) {
    GdprClient client(target_, model_, locks_);
    EC_ASSIGN_OR_RETURN(const GdprClient::Answer answer, client.ask(method, path));
    if (answer.status / 100 == 2) return ok();
    return io_error("HTTP " + std::to_string(answer.status) + " to " + path + ": " + answer.body);
  }

  // A namespace and a rule for each TTL.
  Status prepare() {
    for (std::uint32_t i = 0; i < kGdprTtlSeconds.size(); ++i) {
      const std::string name = gdpr_namespace(i);
      EC_TRY(must("POST", std::string(routes::kNamespaces) + "?name=" + name));
      EC_TRY(must("POST", std::string(routes::kRetention) + "?ns=" + name +
                              "&select=*/*&keep=" + std::to_string(kGdprTtlSeconds[i]) + "s"));
    }
    return ok();
  }

  Status load() {
    const auto start = SteadyClock::now();
    while (model_.size() < size_.records) {
      EC_TRY(check_interrupt());
      std::vector<std::string> descriptions, readings;
      const std::uint64_t end = std::min(size_.records, model_.size() + kRecordsPerPart);
      while (model_.size() < end) {
        std::string said, measured;
        for (std::uint64_t i = 0; i < kRunRecordsPerRequest && model_.size() < end; ++i) {
          const std::uint64_t number = model_.take_number();
          GdprRecord record = model_.layout().record(number);
          record.time_ns = system_clock().wall_ns();
          if (options_.smoke && gdpr_ttl_class(number) == 0) record.time_ns -= kSmokeAgeNs;
          model_.add(number, record);
          said += gdpr_description(number, record) + "\n";
          measured += gdpr_reading(number, record) + "\n";
          figures_.user_bytes += gdpr_user_bytes(number, record);
        }
        descriptions.push_back(http_request("POST", routes::kDevices, "", said));
        readings.push_back(http_request("POST", routes::kReadings, "", measured));
      }
      for (const auto* requests : {&descriptions, &readings})
        EC_TRY(send_all(daemon_->endpoint(), *requests, kLoadConnections, 0).status());
    }
    figures_.load_seconds = run_seconds(start);
    return ok();
  }

  // Polls until at most 90 % of the records can be read.
  Status verify_expiry() {
    const std::uint64_t last =
        (size_.records - 1) / kGdprTtlSeconds.size() * kGdprTtlSeconds.size();
    const std::int64_t end_ns =
        model_.record(last).time_ns + kGdprTtlSeconds.front() * kRunSecondNs;
    while (system_clock().wall_ns() < end_ns) {
      EC_TRY(check_interrupt());
      sleep_ms(1);
    }
    const std::string path =
        std::string(routes::kRetentionPreview) + "?ns=" + gdpr_namespace(0) + "&select=*/*";
    const auto start = SteadyClock::now();
    while (run_seconds(start) < kExpiredWithinSeconds) {
      EC_TRY(check_interrupt());
      GdprClient client(target_, model_, locks_);
      EC_ASSIGN_OR_RETURN(const GdprClient::Answer answer, client.ask("GET", path));
      figures_.expired_ms = static_cast<double>(system_clock().wall_ns() - end_ns) / 1e6;
      const auto json = nlohmann::json::parse(answer.body, nullptr, false);
      if (json.is_object() && json.value("readings", std::uint64_t{1}) == 0) return ok();
      sleep_ms(10);
    }
    return unavailable("what has expired can be read for a minute: is this machine's clock set?");
  }

  // What is on both drives, logs aside, of the store at rest.
  Status weigh() {
    figures_.peak_memory_bytes = usage_of(daemon_->id()).peak_resident_bytes;
    daemon_->stop();
    EC_ASSIGN_OR_RETURN(figures_.stored_bytes, table_bytes(daemon_->directories()));
    return daemon_->start();
  }

  Status play(const GdprRole& role, std::uint64_t seed) {
    const std::vector<GdprOperation> operations =
        draw_operations(role, size_.operations, size_.records, seed);
    for (const GdprOperation& each : operations) {
      const std::uint64_t mixed = figures_.digest ^ static_cast<std::uint64_t>(each.act) << 56 ^
                                  static_cast<std::uint64_t>(each.field) << 48 ^
                                  std::uint64_t{each.number} << 16 ^ each.other;
      figures_.digest = ycsb_hash(mixed) >> 11;  // a number that every reader of JSON can hold
    }
    std::atomic<std::size_t> next{0};
    std::uint64_t last_erasure = 0;
    Status failed;
    std::mutex mutex;
    std::vector<std::thread> threads;
    const auto start = SteadyClock::now();
    for (std::uint32_t i = 0; i < size_.clients; ++i) {
      threads.emplace_back([&] {
        GdprClient client(target_, model_, locks_);
        const auto latency = std::make_unique<Histogram>();
        std::uint64_t right = 0;
        const Status status = take_all(client, operations, next, *latency, right);
        const std::lock_guard lock(mutex);
        if (!status.ok()) next = operations.size();  // the others need not go on
        if (failed.ok()) failed = status;
        figures_.latency.merge(*latency);
        figures_.right += right;
        figures_.repeats += client.repeats();
        if (figures_.mistake.empty()) figures_.mistake = client.mistake();
        last_erasure = std::max(last_erasure, client.last_erasure());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EC_TRY(failed);
    GdprFigures::Role played{role.name, run_seconds(start), 0};
    const auto answered = SteadyClock::now();
    EC_TRY(GdprClient(target_, model_, locks_).wait_until_gone(last_erasure));
    if (last_erasure != 0) played.gone_seconds = run_seconds(answered);
    figures_.roles.push_back(std::move(played));
    figures_.operations += operations.size();
    return ok();
  }

  static Status take_all(GdprClient& client, const std::vector<GdprOperation>& operations,
                         std::atomic<std::size_t>& next, Histogram& latency, std::uint64_t& right) {
    for (std::size_t at = next.fetch_add(1); at < operations.size(); at = next.fetch_add(1)) {
      EC_TRY(check_interrupt());
      const auto begun = SteadyClock::now();
      EC_ASSIGN_OR_RETURN(const bool is_right, client.run(operations[at]));
      latency.add(static_cast<std::uint64_t>((SteadyClock::now() - begun).count()));
      if (is_right) ++right;
    }
    return ok();
  }

  const BenchOptions options_;
  const GdprSize size_;
  GdprModel model_;
  GdprLocks locks_;
  GdprTarget target_;
  std::unique_ptr<DaemonProcess> daemon_;
  GdprFigures figures_;
};

}  // namespace

Result<GdprFigures> run_gdpr_roles(const BenchOptions& options, const GdprSize& size) {
  return GdprRun(options, size).run();
}

}  // namespace edgecase::cli::bench
