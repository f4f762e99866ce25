// The stall workload: keys that are there are put again at random, as fast as they are taken, for
// long enough that flushes and compactions run all the while. Every put is timed, and the puts of
// each hundred milliseconds are counted.
#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/experiments/experiments.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualStallKeys = 200'000;
constexpr std::uint64_t kSmokeStallKeys = 1'000;
constexpr std::uint32_t kUsualStallValueBytes = 1024;
constexpr double kUsualStallSeconds = 10;
constexpr double kSmokeStallSeconds = 0.1;
constexpr std::uint32_t kStallFillBatch = 100;
constexpr std::uint64_t kWindowNs = 100'000'000;

class Stall {
 public:
  explicit Stall(const BenchOptions& options)
      : options_(options),
        num_(options.num_or(kUsualStallKeys, kSmokeStallKeys)),
        value_size_(options.value_size_or(kUsualStallValueBytes)),
        values_(options.seed, value_size_, options.compression_ratio) {}

  Result<Report> run() {
    EC_ASSIGN_OR_RETURN(session_,
                        StoreSession::create(options_, 1, StoreSession::kUsualMemoryBytes));
    EC_TRY(fill());
    reset_own_peak();
    const std::uint64_t written = session_->device_bytes_written();
    EC_TRY(overwrite());
    const auto bytes = static_cast<double>(report_.user_bytes);
    report_.write_amplification =
        static_cast<double>(session_->device_bytes_written() - written) / bytes;
    report_.workload = options_.workload;
    report_.engine = options_.engine;
    report_.value_size = value_size_;
    report_.sync = options_.sync;
    report_.seed = options_.seed;
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    const double p50 = static_cast<double>(report_.latency.percentile_ns(0.5));
    report_.more = {
        {"p999_over_p50", static_cast<double>(report_.latency.percentile_ns(0.999)) / p50},
        {"p9999_us", static_cast<double>(report_.latency.percentile_ns(0.9999)) / 1e3},
        {"slowest_window_per_second", slowest_window()},
        {"median_window_per_second", median_window()}};
    const Figures own = session_->store().figures();
    report_.more.insert(report_.more.end(), own.begin(), own.end());
    return report_;
  }

 private:
  Status fill() {
    const auto batch = session_->store().make_batch();
    for (std::uint64_t done = 0; done < num_;) {
      batch->clear();
      for (const std::uint64_t until = std::min(done + kStallFillBatch, num_); done < until;
           ++done) {
        batch->put(0, keys_.of(done), values_.of(done));
      }
      EC_TRY(session_->store().write(*batch, false));
      EC_TRY(check_interrupt());
    }
    return ok();
  }

  Status overwrite() {
    const auto limit_ns = static_cast<std::uint64_t>((options_.seconds > 0 ? options_.seconds
                                                      : options_.smoke     ? kSmokeStallSeconds
                                                                           : kUsualStallSeconds) *
                                                     1e9);
    SeededRandom random(options_.seed);
    const auto batch = session_->store().make_batch();
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t now_ns = 0;
    for (; now_ns < limit_ns && !interrupted(); ++report_.num) {
      batch->clear();
      batch->put(0, keys_.of(random.below(num_)), values_.of(report_.num));
      const std::uint64_t before_ns = ns_since(start);
      EC_TRY(session_->store().write(*batch, options_.sync));
      now_ns = ns_since(start);
      report_.latency.add(now_ns - before_ns);
      windows_.resize(std::max<std::size_t>(windows_.size(), now_ns / kWindowNs + 1));
      ++windows_[now_ns / kWindowNs];
    }
    report_.seconds = static_cast<double>(now_ns) / 1e9;
    report_.user_bytes = report_.num * (options_.key_size + value_size_);
    if (windows_.size() > 1) windows_.pop_back();  // not a whole one
    std::sort(windows_.begin(), windows_.end());
    return check_interrupt();
  }

  double slowest_window() const { return per_second(windows_.front()); }
  double median_window() const { return per_second(windows_[windows_.size() / 2]); }
  static double per_second(std::uint64_t puts) {
    return static_cast<double>(puts) * 1e9 / static_cast<double>(kWindowNs);
  }

  const BenchOptions& options_;
  const std::uint64_t num_;
  const std::uint32_t value_size_;
  const ValueMaker values_;
  KeyMaker keys_{options_.key_size};
  std::vector<std::uint64_t> windows_;
  std::unique_ptr<StoreSession> session_;
  Report report_;
};

}  // namespace

Result<Report> run_stall(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  return compare(options, [](const BenchOptions& one) { return Stall(one).run(); });
}

}  // namespace edgecase::cli::bench
