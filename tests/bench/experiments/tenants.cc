// The tenants workload: eight tenants put the same number of random keys, then all are read at
// random; once with a namespace each, once in one shared namespace whose keys end in the tenant. A
// peer has the shared form only.
#include <algorithm>
#include <utility>

#include "bench/experiments/experiments.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint32_t kTenants = 8;
constexpr std::uint64_t kUsualTenantsNum = 60'000;  // of each tenant
constexpr std::uint64_t kSmokeTenantsNum = 250;
constexpr std::uint32_t kUsualTenantsValueBytes = 1024;
constexpr std::uint64_t kUsualMemoryBytes = 16u << 20;  // metadata must not all fit
// A prime: a tenant puts each of its numbers once, in an order that jumps about.
constexpr std::uint64_t kJump = 48'271;
constexpr std::uint32_t kTenantsStride = 4;  // operations of which one is timed

struct MeasuredTenants {
  double puts_per_second = 0;
  double put_cpu_us = 0;  // the caller's, of one put and of one get
  double get_cpu_us = 0;
  double seconds = 0;  // of the gets
  std::uint64_t gets = 0;
  double write_amplification = 0;
  double space_amplification = 0;
  Histogram latency;
  Figures figures;
};

class Tenants {
 public:
  explicit Tenants(const BenchOptions& options)
      : options_(options),
        num_(options.num_or(kUsualTenantsNum, kSmokeTenantsNum)),
        value_size_(options.value_size_or(kUsualTenantsValueBytes)),
        values_(options.seed, value_size_, options.compression_ratio) {}

  Result<MeasuredTenants> measure(bool shared) {
    shared_ = shared;
    EC_ASSIGN_OR_RETURN(session_,
                        StoreSession::create(options_, shared ? 1 : kTenants, kUsualMemoryBytes));
    auto measured = put_and_get();
    session_.reset();
    return measured;
  }

  std::uint64_t entry_bytes() const { return options_.key_size + value_size_; }
  std::uint32_t value_size() const { return value_size_; }

 private:
  std::uint32_t space_of(std::uint32_t tenant) const { return shared_ ? 0 : tenant; }
  // In one space the keys of all tenants lie among each other, as hashed ones do.
  ByteView key_of(std::uint64_t number, std::uint32_t tenant) {
    key_ = keys_.of(number * 10);
    if (shared_) key_.back() = static_cast<char>('A' + tenant);
    return key_;
  }

  Result<MeasuredTenants> put_and_get() {
    MeasuredTenants measured;
    EC_TRY(put_all(measured));
    if (options_.cold) EC_TRY(session_->reopen_cold());
    EC_TRY(get_all(measured));
    measured.figures = session_->store().figures();
    return measured;
  }

  Status put_all(MeasuredTenants& measured) {
    const std::uint64_t total = num_ * kTenants;
    const auto batch = session_->store().make_batch();
    const std::uint64_t cpu_ns = thread_cpu_ns();
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < total && !interrupted(); ++i) {
      const auto tenant = static_cast<std::uint32_t>(i % kTenants);
      batch->clear();
      batch->put(space_of(tenant), key_of(i / kTenants * kJump % num_, tenant), values_.of(i));
      EC_TRY(session_->store().write(*batch, options_.sync));
    }
    measured.puts_per_second =
        static_cast<double>(total) / (static_cast<double>(ns_since(start)) / 1e9);
    measured.put_cpu_us =
        static_cast<double>(thread_cpu_ns() - cpu_ns) / 1e3 / static_cast<double>(total);
    EC_TRY(session_->settle());
    const auto bytes = static_cast<double>(total * entry_bytes());
    measured.write_amplification = static_cast<double>(session_->device_bytes_written()) / bytes;
    measured.space_amplification = static_cast<double>(session_->table_bytes()) / bytes;
    return check_interrupt();
  }

  Status get_all(MeasuredTenants& measured) {
    const std::uint64_t total = options_.operations != 0 ? options_.operations : num_ * kTenants;
    SeededRandom random(options_.seed);
    LatencySampler sampler(measured.latency, options_.smoke ? 1 : kTenantsStride);
    const std::uint64_t cpu_ns = thread_cpu_ns();
    const auto start = std::chrono::steady_clock::now();
    for (; measured.gets < total && !interrupted(); ++measured.gets) {
      const auto tenant = static_cast<std::uint32_t>(measured.gets % kTenants);
      const ByteView key = key_of(random.below(num_), tenant);
      sampler.begin();
      const auto value = session_->store().get(space_of(tenant), key);
      sampler.end();
      if (!value.ok()) return value.status();
      if (value->size() != value_size_) return corruption("a value of another size");
    }
    measured.seconds = static_cast<double>(ns_since(start)) / 1e9;
    measured.get_cpu_us =
        static_cast<double>(thread_cpu_ns() - cpu_ns) / 1e3 / static_cast<double>(measured.gets);
    return check_interrupt();
  }

  const BenchOptions& options_;
  const std::uint64_t num_;
  const std::uint32_t value_size_;
  const ValueMaker values_;
  KeyMaker keys_{options_.key_size};
  Bytes key_;
  bool shared_ = false;
  std::unique_ptr<StoreSession> session_;
};

Result<Report> run_tenants_once(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  Tenants tenants(options);
  const bool own = options.engine == kOwnStore;
  EC_ASSIGN_OR_RETURN(const MeasuredTenants first, tenants.measure(!own));
  Report report;
  report.workload = options.workload;
  report.engine = options.engine;
  report.value_size = tenants.value_size();
  report.sync = options.sync;
  report.seed = options.seed;
  report.num = first.gets;
  report.seconds = first.seconds;
  report.user_bytes = first.gets * tenants.entry_bytes();
  report.latency = first.latency;
  report.write_amplification = first.write_amplification;
  report.space_amplification = first.space_amplification;
  report.peak_memory_bytes = own_usage().peak_resident_bytes;
  report.more = {{"tenants", kTenants},
                 {"puts_per_second", first.puts_per_second},
                 {"put_caller_cpu_us", first.put_cpu_us},
                 {"get_caller_cpu_us", first.get_cpu_us}};
  report.more.insert(report.more.end(), first.figures.begin(), first.figures.end());
  if (!own) return report;
  EC_ASSIGN_OR_RETURN(const MeasuredTenants shared, tenants.measure(true));
  const double rate = static_cast<double>(shared.gets) / shared.seconds;
  report.more.emplace_back("shared_ops_per_second", rate);
  report.more.emplace_back("shared_puts_per_second", shared.puts_per_second);
  report.more.emplace_back("shared_put_caller_cpu_us", shared.put_cpu_us);
  report.more.emplace_back("shared_get_caller_cpu_us", shared.get_cpu_us);
  for (const auto& [name, value] : shared.figures)
    report.more.emplace_back("shared_" + name, value);
  report.more.emplace_back("ratio_to_shared", report.ops_per_second() / rate);
  report.more.emplace_back("put_ratio_to_shared", first.puts_per_second / shared.puts_per_second);
  return report;
}

}  // namespace

Result<Report> run_tenants(const BenchOptions& options) {
  return compare(options, run_tenants_once);
}

}  // namespace edgecase::cli::bench
