// The logkv workload: the LogKV paper's 140 mixes of commands (table 1, figures 3 and 4), each in a
// process of its own, beside NaiveKV with a snapshot every 2 MiB and std::unordered_map. A get is
// checked: it finds what is there, and only that.
#include "bench/experiments/experiments.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bench/experiments/logkv_commands.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualCommands = 500'000;
constexpr std::uint64_t kSmokeCommands = 1'000;
constexpr std::size_t kSmokeStep = 35;  // of the mixes: four of them
constexpr std::uint32_t kUsualValueBytes = 50;
constexpr std::uint32_t kStride = 16;  // commands of which one is timed
constexpr const char* kBaselines[] = {"naive-2m", "unordered-map"};

Result<Report> run_mix(const BenchOptions& options, const std::vector<LogkvCommand>& commands) {
  reset_own_peak();
  EC_ASSIGN_OR_RETURN(const auto session,
                      StoreSession::create(options, 1, StoreSession::kUsualMemoryBytes));
  BenchStore& store = session->store();
  Report report;
  report.value_size = options.value_size_or(kUsualValueBytes);
  const ValueMaker values(options.seed, static_cast<std::uint32_t>(report.value_size),
                          options.compression_ratio);
  KeyMaker keys(options.key_size);
  LatencySampler sampler(report.latency, options.smoke ? 1 : kStride);
  const auto batch = store.make_batch();
  const auto start = std::chrono::steady_clock::now();
  for (const LogkvCommand& command : commands) {
    const ByteView key = keys.of(command.key);
    sampler.begin();
    if (command.read) {
      const auto value = store.get(0, key);
      sampler.end();
      if (!value.ok() && value.status().code() != StatusCode::NotFound) return value.status();
      if (value.ok() != command.hits()) return corruption("a get found what it should not");
    } else {
      batch->clear();
      batch->put(0, key, values.of(command.key));
      EC_TRY(store.write(*batch, options.sync));
      sampler.end();
    }
    if (interrupted()) break;
  }
  report.seconds = static_cast<double>(ns_since(start)) / 1e9;
  report.num = commands.size();
  report.user_bytes = commands.size() * (options.key_size + report.value_size);
  report.peak_memory_bytes = own_usage().peak_resident_bytes;
  EC_TRY(check_interrupt());
  return report;
}

// As the figures of a comparison name it.
std::string engine_name(const std::string& peer) {
  std::string name = figure_prefix_of(peer);
  name.pop_back();
  return name;
}

std::string name_of(const LogkvMix& mix) {
  char name[64];
  std::snprintf(name, sizeof(name), "hit_%.2f_read_%.1f_hot_%.2f_at_%.2f", mix.hit_rate,
                mix.read_fraction, mix.hot_fraction, mix.hot_rate);
  return name;
}

// What all rows say of one baseline.
struct Against {
  std::vector<double> ratios, memory;
  std::uint64_t ahead = 0;

  void add(const Report& row, const std::string& engine) {
    ratios.push_back(row.figure("ratio_to_" + engine));
    memory.push_back(static_cast<double>(row.peak_memory_bytes) /
                     row.figure(engine + "_peak_memory_bytes"));
    if (ratios.back() > 1) ++ahead;
  }
};

Result<Report> run_all(const BenchOptions& options) {
  const std::vector<LogkvMix> mixes = logkv_mixes();
  const std::uint64_t count = options.num_or(kUsualCommands, kSmokeCommands);
  std::vector<Against> against(options.peers.size());
  Report report;
  report.workload = options.workload;
  report.engine = options.engine;
  report.sync = options.sync;
  report.seed = options.seed;
  std::vector<std::pair<std::string, double>> rows;
  for (std::size_t i = 0; i < mixes.size(); i += options.smoke ? kSmokeStep : 1) {
    const auto commands = make_logkv_commands(mixes[i], count, options.seed + i);
    EC_ASSIGN_OR_RETURN(const Report row, compare(options, [&](const BenchOptions& one) {
                          return run_mix(one, commands);
                        }));
    report.num += row.num;
    report.seconds += row.seconds;
    report.user_bytes += row.user_bytes;
    report.value_size = row.value_size;
    report.latency.merge(row.latency);
    report.peak_memory_bytes = std::max(report.peak_memory_bytes, row.peak_memory_bytes);
    const std::string name = name_of(mixes[i]);
    rows.emplace_back(name + "_per_second", row.ops_per_second());
    for (std::size_t peer = 0; peer < against.size(); ++peer) {
      const std::string engine = engine_name(options.peers[peer]);
      against[peer].add(row, engine);
      rows.emplace_back(name + "_ratio_to_" + engine, against[peer].ratios.back());
    }
  }
  report.more.emplace_back(
      "mixes", static_cast<double>(rows.size()) / static_cast<double>(1 + against.size()));
  for (std::size_t peer = 0; peer < against.size(); ++peer) {
    const std::string engine = engine_name(options.peers[peer]);
    const Against& rates = against[peer];
    report.more.emplace_back("mixes_ahead_of_" + engine, static_cast<double>(rates.ahead));
    report.more.emplace_back("ratio_to_" + engine, median(rates.ratios));
    report.more.emplace_back("least_ratio_to_" + engine,
                             *std::min_element(rates.ratios.begin(), rates.ratios.end()));
    report.more.emplace_back("memory_ratio_to_" + engine, median(rates.memory));
    report.more.emplace_back("most_memory_ratio_to_" + engine,
                             *std::max_element(rates.memory.begin(), rates.memory.end()));
  }
  report.more.insert(report.more.end(), rows.begin(), rows.end());
  return report;
}

}  // namespace

Result<Report> run_logkv(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options, kLogkvKeyMinBytes));
  BenchOptions all = options;
  if (all.peers.empty()) all.peers.assign(std::begin(kBaselines), std::end(kBaselines));
  all.rounds = options.rounds_or(1);
  return run_all(all);
}

}  // namespace edgecase::cli::bench
