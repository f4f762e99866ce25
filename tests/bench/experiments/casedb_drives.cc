// casedb-drives: the CaseDB paper's figure 10f. The same load with metadata and values on a slow
// drive, with one of them on a fast drive, and with both there.
//
// Load: `num` puts at random, 40 % of them of 50 bytes and the others of 4 KiB (--value-size), in
// durable batches of 16 (--batch), everything written out; then a fifth as many gets of what is
// there, with nothing in memory. Metadata of EdgeCase is keys, filters, indexes and the log.
//
// Drives: options.metadata is a directory on the fast drive and options.values one on the slow
// drive. Without options.values both lie in one, and EdgeCase sees one of them through a
// SlowFileSystem (slow_file_system.h); `drives` of the report says which it was.
#include "bench/experiments/experiments.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "bench/experiments/slow_file_system.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kDrivesNum = 60'000;
constexpr std::uint64_t kDrivesSmokeNum = 800;
constexpr std::uint32_t kDrivesBatch = 16;
constexpr std::uint64_t kPutsPerGet = 5;
constexpr std::uint64_t kSmallPercent = 40;  // of the puts, as in the paper
constexpr std::uint32_t kSmallBytes = 50;
constexpr std::uint32_t kLargeBytes = 4096;
constexpr std::uint32_t kDrivesRounds = 3;
constexpr std::uint64_t kDrivesRoomFactor = 4;         // tables, those that replace them
constexpr std::uint64_t kDrivesLogBytes = 300u << 20;  // of a store, at most
constexpr double kDollarsOfFigure = 10;                // "per $10"
constexpr double kPublishedMetadataRatio = 5.0 / 3.5;  // 1.43

enum class Drive : unsigned char { Slow, Fast };

struct Layout {
  const char* name;
  Drive metadata;
  Drive values;
  double published;  // throughput per $10; 0: the paper has no such bar
};
constexpr Layout kLayouts[] = {{"all_slow", Drive::Slow, Drive::Slow, 3.5},
                               {"metadata_fast", Drive::Fast, Drive::Slow, 5},
                               {"values_fast", Drive::Slow, Drive::Fast, 0},
                               {"all_fast", Drive::Fast, Drive::Fast, 5}};
constexpr std::size_t kLayoutCount = std::size(kLayouts);
constexpr std::size_t kMetadataFast = 1;

// The two places, for as long as it lives.
struct Drives {
  std::unique_ptr<PrivateDirectory> fast;
  std::unique_ptr<PrivateDirectory> slow;
  std::unique_ptr<SlowFileSystem> layer;  // null: the drives are what they are
  std::string words;

  const std::string& path(Drive drive) const {
    return drive == Drive::Fast ? fast->path() : slow->path();
  }
};

std::string tidy_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

Result<Drives> make_drives(const BenchOptions& options) {
  Drives drives;
  EC_ASSIGN_OR_RETURN(drives.fast, PrivateDirectory::create(options.metadata));
  if (!options.values.empty()) {
    EC_ASSIGN_OR_RETURN(drives.slow, PrivateDirectory::create(options.values));
    drives.words = "fast " + (options.metadata.empty() ? "." : options.metadata) + ", slow " +
                   options.values + ", as they are";
    return drives;
  }
  EC_ASSIGN_OR_RETURN(drives.slow, PrivateDirectory::create(options.metadata));
  drives.layer = std::make_unique<SlowFileSystem>(
      posix_file_system(), drives.slow->path(),
      DriveSpeed{options.slow_mb_per_second * 1e6, options.slow_sync_ms / 1e3});
  drives.words = "one drive; the slow one is a layer of EdgeCase's file access with " +
                 tidy_number(options.slow_mb_per_second) + " MB/s and " +
                 tidy_number(options.slow_sync_ms) + " ms more a sync";
  return drives;
}

// One run on one layout.
class DriveLoad {
 public:
  explicit DriveLoad(const BenchOptions& options)
      : options_(options),
        num_(options.num_or(kDrivesNum, kDrivesSmokeNum)),
        large_(options.value_size_or(kLargeBytes)),
        values_(options.seed, std::max(large_, kSmallBytes), options.compression_ratio),
        keys_(options.key_size) {}

  Result<Report> run() {
    EC_ASSIGN_OR_RETURN(session_,
                        StoreSession::create(options_, 1, StoreSession::kUsualMemoryBytes));
    report_.workload = options_.workload;
    report_.engine = options_.engine;
    report_.seed = options_.seed;
    report_.value_size = large_;
    report_.sync = true;
    reset_own_peak();
    EC_TRY(put_all());
    report_.space_amplification =
        static_cast<double>(session_->table_bytes()) / static_cast<double>(written_);
    report_.write_amplification =
        static_cast<double>(session_->device_bytes_written()) / static_cast<double>(written_);
    for (const auto& [name, value] : session_->store().figures()) {
      if (name.ends_with("_bytes_written")) report_.more.emplace_back(name, value);
    }
    EC_TRY(session_->reopen_cold());
    EC_TRY(get_some());
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    session_.reset();
    return std::move(report_);
  }

 private:
  // Which keys have small values is a matter of the key: gets know what to expect.
  std::uint32_t size_of(std::uint64_t key) const {
    return key * 0x9e3779b97f4a7c15ull % 100 < kSmallPercent ? kSmallBytes : large_;
  }
  void done(const char* name, std::uint64_t count, double seconds) {
    report_.num += count;
    report_.seconds += seconds;
    report_.more.emplace_back(name, static_cast<double>(count) / std::max(seconds, 1e-9));
  }

  Status put_all() {
    SeededRandom random(options_.seed);
    const auto batch = session_->store().make_batch();
    const std::uint64_t each = options_.batch_or(kDrivesBatch);
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < num_;) {
      EC_TRY(check_interrupt());
      batch->clear();
      for (const std::uint64_t until = std::min(i + each, num_); i < until; ++i) {
        const std::uint64_t key = random.next() % num_;
        batch->put(0, keys_.of(key), values_.of(i).substr(0, size_of(key)));
        written_ += options_.key_size + size_of(key);
      }
      const auto before = std::chrono::steady_clock::now();
      EC_TRY(session_->store().write(*batch, true));
      report_.latency.add(ns_since(before));
    }
    EC_TRY(session_->store().flush());
    done("puts_per_second", num_, static_cast<double>(ns_since(start)) / 1e9);
    report_.user_bytes += written_;
    return check_interrupt();
  }

  // Gets keys that were put, in another order.
  Status get_some() {
    SeededRandom puts(options_.seed);
    const std::uint64_t count = std::max<std::uint64_t>(num_ / kPutsPerGet, 1);
    std::vector<std::uint64_t> wanted;
    for (std::uint64_t i = 0; i < count; ++i) wanted.push_back(puts.next() % num_);
    for (std::uint64_t i = count; i-- > 1;) std::swap(wanted[i], wanted[puts.next() % (i + 1)]);
    const auto start = std::chrono::steady_clock::now();
    for (const std::uint64_t key : wanted) {
      EC_TRY(check_interrupt());
      const auto value = session_->store().get(0, keys_.of(key));
      if (!value.ok()) return value.status();
      if (value->size() != size_of(key)) return corruption("a value of another size");
      report_.user_bytes += options_.key_size + value->size();
    }
    done("gets_per_second", count, static_cast<double>(ns_since(start)) / 1e9);
    return ok();
  }

  const BenchOptions& options_;
  const std::uint64_t num_;
  const std::uint32_t large_;
  const ValueMaker values_;
  KeyMaker keys_;
  std::unique_ptr<StoreSession> session_;
  std::uint64_t written_ = 0;
  Report report_;
};

BenchOptions layout_options(const BenchOptions& given, const Drives& drives, const Layout& layout) {
  BenchOptions one = given;
  one.metadata = drives.path(layout.metadata);
  one.values = drives.path(layout.values);
  one.file_system = drives.layer.get();
  one.rounds = 1;
  if (drives.layer || layout.metadata != layout.values) one.peers.clear();
  return one;
}

// The board of the paper has a drive on its connector and one outside: both are paid for.
double dollars_of(const BenchOptions& options, const Layout& layout) {
  const auto price = [&](Drive drive) {
    return drive == Drive::Fast ? options.fast_price : options.slow_price;
  };
  return price(layout.metadata) + price(layout.values);
}

double per_ten_dollars(const BenchOptions& options, const Layout& layout, const Report& row) {
  return row.mb_per_second() / (dollars_of(options, layout) / kDollarsOfFigure);
}

void add_layout(Report& report, const BenchOptions& options, const Layout& layout,
                const Report& row, const Report& all_slow) {
  const auto add = [&](const std::string& figure, double value) {
    report.more.emplace_back(std::string(layout.name) + "_" + figure, value);
  };
  add("ops_per_second", row.ops_per_second());
  add("ratio", row.ops_per_second() / std::max(all_slow.ops_per_second(), 1e-9));
  for (const auto& [name, value] : row.more) {
    if (name != "rounds") add(name, value);
  }
  add("mb_per_second_per_10_dollars", per_ten_dollars(options, layout, row));
  if (layout.published > 0) add("published_per_10_dollars", layout.published);
}

std::string drives_table(const BenchOptions& options, const std::vector<Report>& rows) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "  %-14s %9s %7s %9s %9s %12s %10s %8s %9s\n", "on the",
                "ops/s", "ratio", "puts/s", "gets/s", "metadata MB", "values MB", "per $10",
                "published");
  std::string table = line.data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Report& row = rows[i];
    std::snprintf(
        line.data(), line.size(), "  %-14s %9.0f %6.2fx %9.0f %9.0f %12.1f %10.1f %8.2f %9s\n",
        kLayouts[i].name, row.ops_per_second(),
        row.ops_per_second() / std::max(rows.front().ops_per_second(), 1e-9),
        row.figure("puts_per_second"), row.figure("gets_per_second"),
        row.figure("metadata_bytes_written") / 1e6, row.figure("values_bytes_written") / 1e6,
        per_ten_dollars(options, kLayouts[i], row),
        kLayouts[i].published > 0 ? tidy_number(kLayouts[i].published).c_str() : "-");
    table += line.data();
    for (const std::string& peer : options.peers) {
      const double rate = row.figure(figure_prefix_of(peer) + "ops_per_second");
      if (rate <= 0) continue;  // not measured on these drives
      std::snprintf(line.data(), line.size(), "    %-12s %9.0f %6.2fx is EdgeCase to it\n",
                    peer.c_str(), rate, row.ops_per_second() / rate);
      table += line.data();
    }
  }
  return table +
         "  MB: written there. per $10: MB/s for each $10 of the two drives. The paper's ratio of "
         "metadata alone on the fast drive: 1.43\n";
}

Status check_drives(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  EC_TRY(check_no_store(options.metadata));
  const std::uint64_t num = options.num_or(kDrivesNum, kDrivesSmokeNum);
  const std::uint64_t entry = options.value_size_or(kLargeBytes) + options.key_size;
  if (num > UINT64_MAX / kDrivesRoomFactor / entry / 2) {
    return invalid_argument("--num is too large");
  }
  const std::uint64_t room = num * entry * kDrivesRoomFactor + kDrivesLogBytes;
  EC_TRY(check_room(options.metadata, room));
  if (options.values.empty()) return ok();
  EC_TRY(check_no_store(options.values));
  EC_TRY(check_apart(options.metadata, options.values));
  return check_room(options.values, room);
}

const Report& middle_of(std::vector<Report>& rounds) {
  std::sort(rounds.begin(), rounds.end(), [](const Report& a, const Report& b) {
    return a.ops_per_second() < b.ops_per_second();
  });
  return rounds[(rounds.size() - 1) / 2];
}

}  // namespace

Result<Report> run_casedb_drives(const BenchOptions& options) {
  EC_TRY(check_drives(options));
  EC_ASSIGN_OR_RETURN(const Drives drives, make_drives(options));
  std::array<std::vector<Report>, kLayoutCount> measured;
  const std::uint32_t rounds = options.rounds_or(kDrivesRounds);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kLayoutCount; ++i) {
      EC_TRY(check_interrupt());
      const BenchOptions one = layout_options(options, drives, kLayouts[i]);
      EC_ASSIGN_OR_RETURN(
          Report row, compare(one, [](const BenchOptions& run) { return DriveLoad(run).run(); }));
      measured[i].push_back(std::move(row));
    }
  }
  std::vector<Report> rows;
  for (std::vector<Report>& each : measured) rows.push_back(middle_of(each));
  Report report = rows[kMetadataFast];
  report.more.clear();
  report.words.emplace_back("drives", drives.words);
  for (const std::string& peer : options.peers) {
    if (drives.layer)
      report.words.emplace_back(peer, "needs --metadata and --values on two drives");
  }
  report.more.emplace_back("rounds", rounds);
  for (std::size_t i = 0; i < kLayoutCount; ++i) {
    add_layout(report, options, kLayouts[i], rows[i], rows.front());
  }
  report.more.emplace_back("published_metadata_fast_ratio", kPublishedMetadataRatio);
  report.table = drives_table(options, rows);
  return report;
}

}  // namespace edgecase::cli::bench
