// The neighbour workload: a tenant gets and puts at a steady rate, first alone, then while another
// puts at random as fast as it can; once with a namespace each, once in one namespace, and the same
// with a tenant that only puts. Latencies count from when an operation was due, so that a wait is
// counted by all who waited.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/experiments/experiments.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kUsualNeighbourKeys = 100'000;  // of each of the two
constexpr std::uint64_t kSmokeNeighbourKeys = 500;
constexpr std::uint32_t kUsualNeighbourValueBytes = 1024;
constexpr double kUsualRate = 2'000;       // operations a second
constexpr std::uint64_t kGetPercent = 90;  // where it does not only put
constexpr double kUsualSeconds = 5;        // alone, and the same beside the other
constexpr double kSmokeSeconds = 0.1;
constexpr std::uint32_t kFillBatch = 100;

struct Measured {
  Histogram alone, beside;
  std::uint64_t operations = 0;  // of the tenant
  std::uint64_t neighbour_puts = 0;
  double seconds = 0;  // beside the other
};

class Neighbour {
 public:
  explicit Neighbour(const BenchOptions& options)
      : options_(options),
        num_(options.num_or(kUsualNeighbourKeys, kSmokeNeighbourKeys)),
        value_size_(options.value_size_or(kUsualNeighbourValueBytes)),
        rate_(options.rate > 0 ? options.rate : kUsualRate),
        seconds_(options.seconds > 0 ? options.seconds
                 : options.smoke     ? kSmokeSeconds
                                     : kUsualSeconds),
        values_(options.seed, value_size_, options.compression_ratio) {}

  Result<Measured> measure(bool shared, std::uint64_t get_percent) {
    get_percent_ = get_percent;
    other_space_ = shared ? 0 : 1;
    EC_ASSIGN_OR_RETURN(
        session_, StoreSession::create(options_, shared ? 1 : 2, StoreSession::kUsualMemoryBytes));
    Measured measured;
    const Status status = fill_and_run(measured);
    session_.reset();
    if (!status.ok()) return status;
    return measured;
  }

  std::uint32_t value_size() const { return value_size_; }

 private:
  // Keys of the two never meet, also where they share a namespace.
  static ByteView own_key(KeyMaker& keys, std::uint64_t number) { return keys.of(number * 2); }
  static ByteView other_key(KeyMaker& keys, std::uint64_t number) {
    return keys.of(number * 2 + 1);
  }

  Status fill_and_run(Measured& measured) {
    KeyMaker keys(options_.key_size);
    const auto batch = session_->store().make_batch();
    for (std::uint64_t done = 0; done < num_;) {
      batch->clear();
      for (const std::uint64_t until = std::min(done + kFillBatch, num_); done < until; ++done) {
        batch->put(0, own_key(keys, done), values_.of(done));
        batch->put(other_space_, other_key(keys, done), values_.of(done));
      }
      EC_TRY(session_->store().write(*batch, false));
    }
    EC_TRY(session_->settle());
    EC_TRY(run_tenant(measured.alone, measured.operations));
    std::atomic<bool> stop{false};
    Status other;
    std::thread neighbour([&] { other = put_until(stop, measured.neighbour_puts); });
    const auto start = SteadyClock::now();
    const Status own = run_tenant(measured.beside, measured.operations);
    measured.seconds = static_cast<double>(ns_since(start)) / 1e9;
    stop = true;
    neighbour.join();
    EC_TRY(own);
    EC_TRY(other);
    return check_interrupt();
  }

  Status run_tenant(Histogram& latency, std::uint64_t& operations) {
    KeyMaker keys(options_.key_size);
    SeededRandom random(options_.seed);
    const auto batch = session_->store().make_batch();
    const auto count = std::max<std::uint64_t>(static_cast<std::uint64_t>(rate_ * seconds_), 1);
    const auto start = SteadyClock::now();
    for (std::uint64_t i = 0; i < count && !interrupted(); ++i) {
      const auto due = start + std::chrono::nanoseconds(
                                   static_cast<std::int64_t>(static_cast<double>(i) * 1e9 / rate_));
      std::this_thread::sleep_until(due);
      const ByteView key = own_key(keys, random.below(num_));
      if (random.below(100) < get_percent_) {
        const auto value = session_->store().get(0, key);
        if (!value.ok()) return value.status();
        if (value->size() != value_size_) return corruption("a value of another size");
      } else {
        batch->clear();
        batch->put(0, key, values_.of(i));
        EC_TRY(session_->store().write(*batch, options_.sync));
      }
      latency.add(ns_since(due));
      ++operations;
    }
    return ok();
  }

  Status put_until(const std::atomic<bool>& stop, std::uint64_t& puts) {
    KeyMaker keys(options_.key_size);
    SeededRandom random(options_.seed + 1);
    const auto batch = session_->store().make_batch();
    for (; !stop; ++puts) {
      batch->clear();
      batch->put(other_space_, other_key(keys, random.below(num_)), values_.of(puts));
      EC_TRY(session_->store().write(*batch, false));
    }
    return ok();
  }

  const BenchOptions& options_;
  const std::uint64_t num_;
  const std::uint32_t value_size_;
  const double rate_;
  const double seconds_;
  const ValueMaker values_;
  std::uint32_t other_space_ = 1;
  std::uint64_t get_percent_ = kGetPercent;
  std::unique_ptr<StoreSession> session_;
};

void add_figures(Report& report, const std::string& prefix, const Measured& measured) {
  const auto us = [](const Histogram& latency, double share) {
    return static_cast<double>(latency.percentile_ns(share)) / 1e3;
  };
  for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}}) {
    report.more.emplace_back(prefix + "alone_" + name + "_us", us(measured.alone, share));
    report.more.emplace_back(prefix + "beside_" + name + "_us", us(measured.beside, share));
  }
  report.more.emplace_back(prefix + "p99_ratio",
                           us(measured.beside, 0.99) / us(measured.alone, 0.99));
  report.more.emplace_back(prefix + "neighbour_puts_per_second",
                           static_cast<double>(measured.neighbour_puts) / measured.seconds);
}

Result<Report> run_once(const BenchOptions& options) {
  Neighbour neighbour(options);
  const bool own = options.engine == kOwnStore;  // a peer has one namespace
  EC_ASSIGN_OR_RETURN(const Measured first, neighbour.measure(!own, kGetPercent));
  Report report;
  report.workload = options.workload;
  report.engine = options.engine;
  report.value_size = neighbour.value_size();
  report.threads = 2;
  report.sync = options.sync;
  report.seed = options.seed;
  report.num = first.operations;
  report.seconds = 2 * first.seconds;
  report.user_bytes = first.operations * (options.key_size + report.value_size);
  report.latency = first.beside;
  add_figures(report, "", first);
  if (own) {
    EC_ASSIGN_OR_RETURN(const Measured shared, neighbour.measure(true, kGetPercent));
    add_figures(report, "shared_", shared);
    EC_ASSIGN_OR_RETURN(const Measured puts, neighbour.measure(false, 0));
    add_figures(report, "puts_", puts);
    EC_ASSIGN_OR_RETURN(const Measured shared_puts, neighbour.measure(true, 0));
    add_figures(report, "shared_puts_", shared_puts);
  }
  report.peak_memory_bytes = own_usage().peak_resident_bytes;
  return report;
}

}  // namespace

Result<Report> run_neighbour(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  return compare(options, run_once);
}

}  // namespace edgecase::cli::bench
