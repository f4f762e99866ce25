#include "bench/comparison.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <type_traits>

#include "bench/processes.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint32_t kUsualRounds = 3;

// A report as a child hands it over: plain memory, shared.
struct PlainReport {
  static constexpr std::size_t kFiguresMax = 192;
  static constexpr std::size_t kNameMax = 48;
  struct Figure {
    char name[kNameMax];
    double value;
  };

  bool finished;
  StatusCode code;
  char message[512];
  std::uint64_t num, user_bytes, value_size, peak_memory_bytes;
  std::uint32_t threads;
  double seconds, write_amplification, space_amplification;
  Histogram latency;
  std::size_t figures;
  Figure figure[kFiguresMax];
};
static_assert(std::is_trivially_copyable_v<PlainReport>);

template <std::size_t size>
void copy_text(char (&to)[size], const std::string& from) {
  to[from.copy(to, size - 1)] = '\0';
}

void fill_plain(PlainReport& plain, const Result<Report>& report) {
  plain.code = report.status().code();
  copy_text(plain.message, report.status().message());
  if (report.ok()) {
    plain.num = report->num;
    plain.user_bytes = report->user_bytes;
    plain.value_size = report->value_size;
    plain.peak_memory_bytes = report->peak_memory_bytes;
    plain.threads = report->threads;
    plain.seconds = report->seconds;
    plain.write_amplification = report->write_amplification;
    plain.space_amplification = report->space_amplification;
    plain.latency = report->latency;
    if (report->more.size() > PlainReport::kFiguresMax) {
      plain.code = StatusCode::Unsupported;
      copy_text(plain.message, "more figures than a comparison takes");
    }
    plain.figures = std::min(report->more.size(), PlainReport::kFiguresMax);
    for (std::size_t i = 0; i < plain.figures; ++i) {
      copy_text(plain.figure[i].name, report->more[i].first);
      plain.figure[i].value = report->more[i].second;
    }
  }
  plain.finished = true;
}

Result<Report> report_of(const PlainReport& plain, const BenchOptions& options) {
  if (!plain.finished) return io_error("the process that measured " + options.engine + " died");
  if (plain.code != StatusCode::Ok) return Status(plain.code, plain.message);
  Report report;
  report.workload = options.workload;
  report.engine = options.engine;
  report.sync = options.sync;
  report.seed = options.seed;
  report.num = plain.num;
  report.user_bytes = plain.user_bytes;
  report.value_size = plain.value_size;
  report.peak_memory_bytes = plain.peak_memory_bytes;
  report.threads = plain.threads;
  report.seconds = plain.seconds;
  report.write_amplification = plain.write_amplification;
  report.space_amplification = plain.space_amplification;
  report.latency = plain.latency;
  for (std::size_t i = 0; i < plain.figures; ++i) {
    report.more.emplace_back(plain.figure[i].name, plain.figure[i].value);
  }
  return report;
}

using Run = std::function<Result<Report>(const BenchOptions&)>;

Result<Report> run_in_child(const BenchOptions& options, const Run& run) {
  void* memory = ::mmap(nullptr, sizeof(PlainReport), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return io_error(std::string("mmap: ") + std::strerror(errno));
  auto& plain = *static_cast<PlainReport*>(memory);
  const pid_t child = ::fork();
  if (child == 0) {
    fill_plain(plain, run(options));
    ::_exit(0);
  }
  Result<Report> report = io_error(std::string("fork: ") + std::strerror(errno));
  if (child > 0) {
    int state = 0;
    while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
      if (interrupted()) ::kill(child, SIGTERM);  // it clears away what it made, and ends
    }
    report = report_of(plain, options);
  }
  ::munmap(memory, sizeof(PlainReport));
  return report;
}

// The rounds of one engine.
class Rounds {
 public:
  void add(Report report) { reports_.push_back(std::move(report)); }

  const Report& middle() {
    std::sort(reports_.begin(), reports_.end(), [](const Report& a, const Report& b) {
      return a.ops_per_second() < b.ops_per_second();
    });
    return reports_[(reports_.size() - 1) / 2];
  }
  template <typename Of>
  double median_of(const Of& of) const {
    std::vector<double> values;
    for (const Report& report : reports_) values.push_back(of(report));
    return median(std::move(values));
  }

 private:
  std::vector<Report> reports_;
};

double microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1000;
}

void add_peer(Report& report, const std::string& peer, const Rounds& rounds) {
  const std::string prefix = figure_prefix_of(peer);
  const auto add = [&](const std::string& name, double value) {
    report.more.emplace_back(prefix + name, value);
  };
  const double rate = rounds.median_of([](const Report& r) { return r.ops_per_second(); });
  add("ops_per_second", rate);
  const auto percentile = [&rounds](double share) {
    return rounds.median_of([share](const Report& r) {
      return microseconds(share < 1 ? r.latency.percentile_ns(share) : r.latency.max_ns());
    });
  };
  add("p50_us", percentile(0.5));
  add("p99_us", percentile(0.99));
  add("p999_us", percentile(0.999));
  add("max_us", percentile(1));
  add("write_amplification",
      rounds.median_of([](const Report& r) { return r.write_amplification; }));
  add("space_amplification",
      rounds.median_of([](const Report& r) { return r.space_amplification; }));
  add("peak_memory_bytes",
      rounds.median_of([](const Report& r) { return static_cast<double>(r.peak_memory_bytes); }));
  for (const char* name : {"process_write_amplification", "peak_space_amplification",
                           "bytes_on_drives", "settle_seconds"}) {
    add(name, rounds.median_of([name](const Report& r) { return r.figure(name); }));
  }
  report.more.emplace_back("ratio_to_" + prefix.substr(0, prefix.size() - 1),
                           rate > 0 ? report.ops_per_second() / rate : 0);
}

}  // namespace

std::string figure_prefix_of(std::string peer) {
  std::replace(peer.begin(), peer.end(), '-', '_');
  return peer + "_";
}

Result<Report> compare(const BenchOptions& options, const Run& run) {
  const std::uint32_t rounds = options.rounds_or(options.peers.empty() ? 1 : kUsualRounds);
  if (rounds == 1 && options.peers.empty()) return run(options);
  std::vector<std::string> engines{options.engine};
  engines.insert(engines.end(), options.peers.begin(), options.peers.end());
  std::vector<Rounds> measured(engines.size());
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < engines.size(); ++i) {
      EC_TRY(check_interrupt());
      BenchOptions one = options;
      one.engine = engines[i];
      one.peers.clear();
      one.rounds = 1;
      EC_ASSIGN_OR_RETURN(Report report, run_in_child(one, run));
      measured[i].add(std::move(report));
    }
  }
  Report report = measured.front().middle();
  report.more.emplace_back("rounds", rounds);
  for (std::size_t i = 1; i < engines.size(); ++i) add_peer(report, engines[i], measured[i]);
  return report;
}

}  // namespace edgecase::cli::bench
