// table2: what the CaseDB paper's table 2 says of LevelDB, WiscKey and CaseDB, row by row, and for
// each row what shows on a store of this engine that it holds here.
#include "bench/experiments/experiments.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kTable2Keys = 100'000;
constexpr std::uint64_t kTable2SmokeKeys = 2'000;
constexpr std::uint32_t kTable2ValueBytes = 1'024;
constexpr std::uint32_t kTable2SmallBytes = 50;
constexpr std::uint64_t kTable2UpdatesPerKey = 9;  // 90 % of all puts

// What "low" and "avoided" mean.
constexpr double kWriteAmplificationLow = 4;    // the paper's figure 10e: 2 to 4
constexpr double kSpaceAmplificationLow = 1.3;  // settled
constexpr double kGarbageShareLow = 0.2;        // of the value files, settled
constexpr double kMissingReadsMax = 0.05;       // values read for a key that is not there
constexpr double kSmallMetadataGain = 2;        // less metadata in groups than without
constexpr double kSmokeFactor = 4;              // of amplifications where little is written

struct PaperRow {
  const char* category;
  const char* leveldb;
  const char* wisckey;
  const char* casedb;
};
constexpr PaperRow kPaperRows[] = {
    {"LSM-tree", "yes", "only keys", "yes"},       {"Bloom filter", "yes", "no", "yes"},
    {"Small writes avoidance", "no", "no", "yes"}, {"Write amplification", "high", "low", "low"},
    {"Space amplification", "low", "high", "low"}, {"Duplication", "moderate", "high", "low"},
    {"Merging", "compaction", "GC", "DVC"},        {"Sorting", "yes", "only keys", "yes"},
    {"NVMe adapted", "no", "no", "yes"},
};

struct Proof {
  bool holds = false;
  std::string words;
};

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// Whether everything comes back, once and in order.
struct OrderedScan {
  std::uint64_t entries = 0;
  bool in_order = true;
  double value_reads = 0;
};

class Table2 {
 public:
  explicit Table2(const BenchOptions& options)
      : options_(options),
        num_(options.num_or(kTable2Keys, kTable2SmokeKeys)),
        value_size_(options.value_size_or(kTable2ValueBytes)) {}

  Result<Report> run() {
    EC_ASSIGN_OR_RETURN(updated_, measure("overwrite", value_size_, true));
    EC_ASSIGN_OR_RETURN(missing_, measure("readmissing", value_size_, true));
    EC_ASSIGN_OR_RETURN(grouped_, measure("fillrandom", kTable2SmallBytes, true));
    EC_ASSIGN_OR_RETURN(apart_, measure("fillrandom", kTable2SmallBytes, false));
    EC_TRY(scan_in_order());
    report_.workload = options_.workload;
    report_.engine = options_.engine;
    report_.value_size = value_size_;
    report_.seed = options_.seed;
    report_.write_amplification = updated_.write_amplification;
    report_.space_amplification = updated_.space_amplification;
    return tell();
  }

 private:
  Result<Report> measure(const char* workload, std::uint32_t value_size, bool coalesce) {
    BenchOptions one = options_;
    one.workload = workload;
    one.num = num_;
    one.value_size = value_size;
    one.coalesce = coalesce;
    one.random_fill = true;
    const bool updates = one.workload == "overwrite";
    if (updates) one.operations = num_ * kTable2UpdatesPerKey;
    if (!updates) one.peers.clear();
    auto measured = run_store_workload(one);
    if (!measured.ok()) return measured;
    report_.num += measured->num;
    report_.seconds += measured->seconds;
    report_.user_bytes += measured->user_bytes;
    report_.peak_memory_bytes = std::max(report_.peak_memory_bytes, measured->peak_memory_bytes);
    return measured;
  }

  Status scan_in_order() {
    EC_ASSIGN_OR_RETURN(const auto session,
                        StoreSession::create(options_, 1, StoreSession::kUsualMemoryBytes));
    const ValueMaker values(options_.seed, value_size_, options_.compression_ratio);
    KeyMaker keys(options_.key_size);
    SeededRandom random(options_.seed);
    const auto batch = session->store().make_batch();
    std::vector<bool> written(num_);
    for (std::uint64_t i = 0; i < 2 * num_; ++i) {
      const std::uint64_t number = random.below(num_);
      written[number] = true;
      batch->clear();
      batch->put(0, keys.of(number), values.of(i));
      EC_TRY(session->store().write(*batch, false));
      EC_TRY(check_interrupt());
    }
    EC_TRY(session->settle());
    Bytes last;
    EC_TRY(session->store().scan({}, [&](ByteView key, ByteView) {
      scan_.in_order = scan_.in_order && (last.empty() || ByteView(last) < key);
      last = key;
      ++scan_.entries;
      return true;
    }));
    scan_.in_order = scan_.in_order &&
                     scan_.entries == static_cast<std::uint64_t>(std::ranges::count(written, true));
    for (const auto& [name, value] : session->store().figures()) {
      if (name == "value_reads") scan_.value_reads = value;
    }
    return ok();
  }

  double allowed(double amplification) const {
    return options_.smoke ? kSmokeFactor * amplification : amplification;
  }

  std::string beside(const char* figure) const {
    std::string words;
    for (const std::string& peer : options_.peers) {
      words +=
          formatted("; %s %.2f", peer.c_str(), updated_.figure(figure_prefix_of(peer) + figure));
    }
    return words;
  }

  Proof proof_of(std::size_t row) const {
    const auto of = [this](const char* figure) { return updated_.figure(figure); };
    switch (row) {
      case 0:
        return {of("runs") + of("level0_tables") > 0,
                formatted("%.0f sorted runs and %.0f tables of level 0 after %llu puts", of("runs"),
                          of("level0_tables"), static_cast<unsigned long long>(updated_.num))};
      case 1:
        return {missing_.figure("value_reads_per_get") <= kMissingReadsMax,
                formatted("keys that are not there: %.3f filters asked a get, %.4f values read",
                          missing_.figure("filter_probes_per_get"),
                          missing_.figure("value_reads_per_get"))};
      case 2: {
        const double grouped = grouped_.figure("metadata_share");
        const double apart = apart_.figure("metadata_share");
        return {grouped * kSmallMetadataGain <= apart,
                formatted("values of %u bytes: %.1f %% of metadata in groups, %.1f %% each alone, "
                          "%.1f times as many puts",
                          kTable2SmallBytes, 100 * grouped, 100 * apart,
                          grouped_.ops_per_second() / apart_.ops_per_second())};
      }
      case 3:
        return {updated_.write_amplification <= allowed(kWriteAmplificationLow),
                formatted("%.2f with 90 %% updates, both drives", updated_.write_amplification) +
                    beside("write_amplification")};
      case 4:
        return {updated_.space_amplification <= allowed(kSpaceAmplificationLow),
                formatted("%.2f with 90 %% updates, settled", updated_.space_amplification) +
                    beside("space_amplification")};
      case 5:
        return {options_.smoke || of("garbage_share") <= kGarbageShareLow,
                formatted("%.1f %% of the value files superseded when settled",
                          100 * of("garbage_share"))};
      case 6:
        return {
            options_.smoke || (of("merges") > 0 && of("carried_items") > 0),
            formatted("%.0f merges of metadata carried %.0f items by reference, %.0f relocations",
                      of("merges"), of("carried_items"), of("relocations"))};
      case 7:
        return {
            scan_.in_order,
            formatted("%llu entries put at random come in order, keys and values, by %.0f reads",
                      static_cast<unsigned long long>(scan_.entries), scan_.value_reads)};
      default:
        return {of("metadata_bytes_written") > 0 && of("values_bytes_written") > 0,
                formatted("%.1f MB of log, keys and filters to one drive, %.1f MB of values to the "
                          "other",
                          of("metadata_bytes_written") / 1e6, of("values_bytes_written") / 1e6)};
    }
  }

  Result<Report> tell() {
    report_.rows.push_back({"category", "leveldb", "wisckey", "casedb", "edgecase", "proof"});
    std::string broken;
    std::size_t row = 0;
    for (const PaperRow& each : kPaperRows) {
      const Proof proof = proof_of(row++);
      report_.rows.push_back({each.category, each.leveldb, each.wisckey, each.casedb,
                              proof.holds ? each.casedb : "does not hold", proof.words});
      if (!proof.holds) broken += std::string("; ") + each.category + ": " + proof.words;
    }
    if (!broken.empty()) return corruption("of the paper's table 2 do not hold" + broken);
    return std::move(report_);
  }

  const BenchOptions& options_;
  const std::uint64_t num_;
  const std::uint32_t value_size_;
  Report report_;
  Report updated_;
  Report missing_;
  Report grouped_;
  Report apart_;
  OrderedScan scan_;
};

}  // namespace

Result<Report> run_table2(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  if (options.engine != kOwnStore) return invalid_argument("table2 is of EdgeCase's own engine");
  return Table2(options).run();
}

}  // namespace edgecase::cli::bench
