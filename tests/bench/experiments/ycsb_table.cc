// ycsb: the CaseDB paper's figure 11 in one command. YCSB's workloads A to F with values of 50
// bytes and of 16 KiB, twelve cells, on EdgeCase and on the peers that were named; each cell is a
// run of ycsb-a … ycsb-f.
#include "bench/experiments/experiments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint32_t kYcsbSizes[] = {50, 16u << 10};
constexpr char kYcsbLetters[] = {'a', 'b', 'c', 'd', 'e', 'f'};
constexpr std::uint64_t kCellBytesMax = 500'000'000;  // of a cell's records, at most kCellNumMax
constexpr std::uint64_t kCellNumMax = 1'000'000;
constexpr std::uint64_t kCellSmokeNum = 300;
constexpr std::uint32_t kCellKeyBytes = 16;  // at least; the command line's usual is enough
// What a cell may take of the drives for each byte of its records: tables, those that replace them,
// and the log.
constexpr std::uint64_t kRoomFactor = 4;
constexpr std::uint64_t kLogBytes = 300u << 20;

// Figure 11: "approximately 17 times more" than the three others with small values. For large ones
// it has bars without numbers; over all it says 30 times LevelDB.
constexpr double kPublishedSmall = 17;
constexpr double kPublishedMeanLeveldb = 30;

// One row: what EdgeCase and the peers did in a cell.
struct Cell {
  std::string name;  // "a_50"
  double own = 0;
  std::vector<double> peers;  // in the order of the options
};

BenchOptions cell_options(const BenchOptions& given, char letter, std::uint32_t value_size) {
  BenchOptions one = given;
  one.workload = std::string("ycsb-") + letter;
  one.value_size = value_size;
  one.key_size = std::max(given.key_size, kCellKeyBytes);
  one.num = given.num_or(
      std::clamp<std::uint64_t>(kCellBytesMax / (value_size + one.key_size), 1, kCellNumMax),
      kCellSmokeNum);
  return one;
}

// Leaves those peers in `options` that this program can open, and names the others.
Status drop_absent_peers(BenchOptions& options, Report& report) {
  std::vector<std::string> present;
  for (const std::string& peer : options.peers) {
    EC_TRY(check_interrupt());
    BenchOptions probe = cell_options(options, 'c', kYcsbSizes[0]);
    probe.peers = {peer};
    probe.smoke = true;
    probe.rounds = 1;
    probe.num = probe.operations = 1;
    const auto answer = run_ycsb(probe);
    if (answer.ok()) {
      present.push_back(peer);
    } else if (answer.status().code() == StatusCode::Unsupported) {
      report.words.emplace_back(peer, "not installed");
    } else {
      return answer.status();
    }
  }
  options.peers = present;
  return ok();
}

Cell cell_of(const BenchOptions& one, char letter, const Report& row) {
  Cell cell{letter + ("_" + std::to_string(one.value_size)), row.ops_per_second(), {}};
  for (const std::string& peer : one.peers) {
    cell.peers.push_back(row.figure(figure_prefix_of(peer) + "ops_per_second"));
  }
  return cell;
}

double ratio_of(double own, double other) {
  return other > 0 ? own / other : 0;
}

void add_cell(Report& report, const std::vector<std::string>& peers, const Cell& cell) {
  const auto add = [&](const std::string& figure, double value) {
    report.more.emplace_back(cell.name + "_" + figure, value);
  };
  add("ops_per_second", cell.own);
  if (cell.name.ends_with("_50")) add("published_ratio", kPublishedSmall);
  double best = 0;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const std::string prefix = figure_prefix_of(peers[i]);
    add(prefix + "ops_per_second", cell.peers[i]);
    add("ratio_to_" + prefix.substr(0, prefix.size() - 1), ratio_of(cell.own, cell.peers[i]));
    best = std::max(best, cell.peers[i]);
  }
  if (!peers.empty()) add("ratio_to_best_peer", ratio_of(cell.own, best));
}

// Over all cells: the geometric mean to each peer, and the least of the ratios to the best.
void add_means(Report& report, const std::vector<std::string>& peers,
               const std::vector<Cell>& cells) {
  report.more.emplace_back("cells", cells.size());
  double least = 0;
  for (const Cell& cell : cells) {
    if (peers.empty()) break;
    const double best = *std::max_element(cell.peers.begin(), cell.peers.end());
    const double ratio = ratio_of(cell.own, best);
    least = least > 0 ? std::min(least, ratio) : ratio;
  }
  if (!peers.empty()) report.more.emplace_back("least_ratio_to_best_peer", least);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    double logarithms = 0;
    for (const Cell& cell : cells)
      logarithms += std::log(std::max(ratio_of(cell.own, cell.peers[i]), 1e-9));
    const std::string prefix = figure_prefix_of(peers[i]);
    report.more.emplace_back("mean_ratio_to_" + prefix.substr(0, prefix.size() - 1),
                             std::exp(logarithms / static_cast<double>(cells.size())));
    if (peers[i] == "leveldb") {
      report.more.emplace_back("published_mean_ratio_to_leveldb", kPublishedMeanLeveldb);
    }
  }
}

std::string table_of(const std::vector<std::string>& peers, const std::vector<Cell>& cells) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "  %-9s %9s %14s", "cell", "published", "edgecase ops/s");
  std::string table = text.data();
  for (const std::string& peer : peers) {
    std::snprintf(text.data(), text.size(), " %14s %8s", peer.c_str(), "ratio");
    table += text.data();
  }
  for (const Cell& cell : cells) {
    std::snprintf(text.data(), text.size(), "%.0fx", kPublishedSmall);
    const std::string published = cell.name.ends_with("_50") ? text.data() : "-";
    std::snprintf(text.data(), text.size(), "\n  %-9s %9s %14.0f", cell.name.c_str(),
                  published.c_str(), cell.own);
    table += text.data();
    for (const double peer : cell.peers) {
      std::snprintf(text.data(), text.size(), " %14.0f %7.2fx", peer, ratio_of(cell.own, peer));
      table += text.data();
    }
  }
  return table +
         "\n  published: CaseDB's paper, figure 11, over LevelDB, WiscKey and HashKV on its board; "
         "mean of all cells 30x, 16x, 12x\n";
}

}  // namespace

Result<Report> run_ycsb_table(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  EC_TRY(check_no_store(options.metadata));
  EC_TRY(check_no_store(options.values));
  BenchOptions wanted = options;
  Report report;
  report.workload = options.workload;
  report.engine = options.engine;
  report.threads = options.threads_or(1);
  report.sync = options.sync;
  report.seed = options.seed;
  EC_TRY(drop_absent_peers(wanted, report));
  std::vector<Cell> cells;
  for (const std::uint32_t size : kYcsbSizes) {
    if (options.value_size != 0 && options.value_size != size) continue;
    for (const char letter : kYcsbLetters) {
      EC_TRY(check_interrupt());
      const BenchOptions one = cell_options(wanted, letter, size);
      const std::uint64_t room = one.num * (size + one.key_size) * kRoomFactor + kLogBytes;
      EC_TRY(check_room(options.metadata, room));
      if (!options.values.empty()) EC_TRY(check_room(options.values, room));
      EC_ASSIGN_OR_RETURN(const Report row, run_ycsb(one));
      cells.push_back(cell_of(one, letter, row));
      add_cell(report, wanted.peers, cells.back());
      report.num += row.num;
      report.seconds += row.seconds;
      report.user_bytes += row.user_bytes;
      report.value_size = size;
      report.latency.merge(row.latency);
      report.peak_memory_bytes = std::max(report.peak_memory_bytes, row.peak_memory_bytes);
    }
  }
  if (cells.empty()) return invalid_argument("ycsb has --value-size 50 and 16384, or both");
  add_means(report, wanted.peers, cells);
  report.table = table_of(wanted.peers, cells);
  return report;
}

}  // namespace edgecase::cli::bench
