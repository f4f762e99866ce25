// The experiments of the CaseDB paper (its figure 10 and section 3), each a sweep of value sizes
// over workloads on a store. What the paper published stands beside what was measured; it was
// another machine.
#include "bench/experiments/experiments.h"

#include <algorithm>
#include <span>

#include "bench/store_session.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kBytesMax =
    200'000'000;  // keys and values of a size, at most kCaseKeysMax keys
constexpr std::uint64_t kCaseKeysMax = 1'000'000;
constexpr std::uint64_t kCaseSmokeKeys = 500;
constexpr std::uint64_t kUpdatesPerKey = 9;  // casedb-amplification: 90 % of all puts
// The paper's metadata of an entry: key, 20 bytes of offset, ten bits of filter (section 3.1).
constexpr double kPaperOffsetBytes = 20;
constexpr double kPaperFilterBytes = 10.0 / 8;

struct Published {
  std::uint32_t value_size;
  double figure;
};

// One line of an experiment: a workload at each size.
struct Sweep {
  const char* experiment;
  const char* name;      // of its rows
  const char* workload;  // on a store
  std::span<const std::uint32_t> sizes;
  void (*adjust)(BenchOptions& options);
  std::span<const Published> published;  // MB/s, where the paper tells them
};

constexpr std::uint32_t kAllSizes[] = {50, 256, 1024, 4096, 16384, 65536};
constexpr std::uint32_t kMetadataSizes[] = {50, 256, 1024, 4096, 16384, 32768};
constexpr std::uint32_t kSmallSizes[] = {5, 50, 256, 1024, 4096};
constexpr std::uint32_t kUpdatedSizes[] = {50, 1024, 4096};
constexpr Published kPaperWrites[] = {{50, 40}, {4096, 45}, {65536, 83}};
constexpr Published kPaperCoalesced[] = {{50, 40}};
constexpr Published kPaperApart[] = {{50, 1.1}};

void as_it_is(BenchOptions&) {}
void cold(BenchOptions& options) {
  options.cold = true;
}
void apart(BenchOptions& options) {
  options.coalesce = false;
}
void update(BenchOptions& options) {
  options.operations = options.num * kUpdatesPerKey;
}

constexpr Sweep kSweeps[] = {
    {"casedb-writes", "in_order", "fillseq", kAllSizes, as_it_is, kPaperWrites},
    {"casedb-writes", "random", "fillrandom", kAllSizes, as_it_is, kPaperWrites},
    {"casedb-reads", "warm", "readrandom", kAllSizes, as_it_is, {}},
    {"casedb-reads", "cold", "readrandom", kAllSizes, cold, {}},
    {"casedb-metadata", "in_order", "fillseq", kMetadataSizes, as_it_is, {}},
    {"casedb-coalescing", "coalesced", "fillrandom", kSmallSizes, as_it_is, kPaperCoalesced},
    {"casedb-coalescing", "apart", "fillrandom", kSmallSizes, apart, kPaperApart},
    {"casedb-amplification", "updated", "overwrite", kUpdatedSizes, update, {}},
};

BenchOptions options_of(const Sweep& sweep, const BenchOptions& given, std::uint32_t value_size) {
  BenchOptions one = given;
  one.workload = sweep.workload;
  one.value_size = value_size;
  one.num = given.num_or(
      std::clamp<std::uint64_t>(kBytesMax / (value_size + given.key_size), 1, kCaseKeysMax),
      kCaseSmokeKeys);
  sweep.adjust(one);
  return one;
}

// Which figures of a row matter to its experiment.
void add_row(Report& report, const Sweep& sweep, const std::vector<std::string>& peers,
             const Report& row) {
  const std::string name = std::string(sweep.name) + "_" + std::to_string(row.value_size) + "_";
  const auto add = [&](const std::string& figure, double value) {
    report.more.emplace_back(name + figure, value);
  };
  const std::string experiment = sweep.experiment;
  if (experiment == "casedb-metadata") {
    const auto size = static_cast<double>(row.value_size);
    add("metadata_share", row.figure("metadata_share"));
    add("paper_formula_share", (16 + kPaperOffsetBytes + kPaperFilterBytes) / size);
    return;
  }
  if (experiment == "casedb-amplification") {
    add("write_amplification", row.write_amplification);
    add("process_write_amplification", row.figure("process_write_amplification"));
    add("space_amplification", row.space_amplification);
    add("peak_space_amplification", row.figure("peak_space_amplification"));
  } else {
    add("mb_per_second", row.mb_per_second());
  }
  if (experiment == "casedb-coalescing") add("metadata_share", row.figure("metadata_share"));
  for (const Published& each : sweep.published) {
    if (each.value_size == row.value_size) add("published_mb_per_second", each.figure);
  }
  for (const auto& named : row.more) {
    const std::string& figure = named.first;
    if (figure.starts_with("ratio_to_")) add(figure, named.second);
    const bool of_peer = std::any_of(peers.begin(), peers.end(), [&](const std::string& peer) {
      return figure.starts_with(figure_prefix_of(peer));
    });
    const bool amplification =
        figure.ends_with("write_amplification") || figure.ends_with("space_amplification");
    if (experiment == "casedb-amplification" && of_peer && amplification) add(figure, named.second);
  }
}

// What coalescing gains, and what it costs where values are large.
void add_coalescing_ratios(Report& report) {
  for (const std::uint32_t size : kSmallSizes) {
    const std::string end = "_" + std::to_string(size) + "_mb_per_second";
    const double alone = report.figure("apart" + end);
    if (alone > 0) {
      report.more.emplace_back("coalesced_ratio_" + std::to_string(size),
                               report.figure("coalesced" + end) / alone);
    }
  }
}

}  // namespace

Result<Report> run_casedb(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  Report report;
  report.workload = options.workload;
  report.engine = options.engine;
  report.threads = options.threads_or(1);
  report.sync = options.sync;
  report.seed = options.seed;
  for (const Sweep& sweep : kSweeps) {
    if (options.workload != sweep.experiment) continue;
    for (const std::uint32_t size : sweep.sizes) {
      if (options.value_size != 0 && options.value_size != size) continue;
      EC_ASSIGN_OR_RETURN(const Report row, run_store_workload(options_of(sweep, options, size)));
      report.num += row.num;
      report.seconds += row.seconds;
      report.user_bytes += row.user_bytes;
      report.value_size = row.value_size;
      report.latency.merge(row.latency);
      report.peak_memory_bytes = std::max(report.peak_memory_bytes, row.peak_memory_bytes);
      add_row(report, sweep, options.peers, row);
    }
  }
  if (report.num == 0) {
    return invalid_argument(options.workload + " has no values of --value-size " +
                            std::to_string(options.value_size));
  }
  add_coalescing_ratios(report);
  return report;
}

}  // namespace edgecase::cli::bench
