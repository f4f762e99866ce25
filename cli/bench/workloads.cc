#include "bench/workloads.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "bench/processes.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {

std::span<const Workload> workloads() {
  constexpr RunWorkload* kElsewhere = nullptr;
  static constexpr Workload kWorkloads[] = {
      {"board", "readings and blobs", "sizes this board: sensors, images, video, days", run_board},
      {"fillseq", "puts", "write keys in order", run_store_workload},
      {"fillrandom", "puts", "write keys drawn at random", run_store_workload},
      {"overwrite", "puts", "write keys that are there, at random", run_store_workload},
      {"deleterandom", "deletes", "delete keys drawn at random", run_store_workload},
      {"readrandom", "gets", "read keys drawn at random", run_store_workload},
      {"hotkeys", "gets", "80 % of the gets mean 5 % of the keys, beside all alike",
       run_store_workload},
      {"readmissing", "gets", "read keys that are not there", run_store_workload},
      {"seekrandom", "entries", "read 100 in order from keys drawn at random", run_store_workload},
      {"readseq", "entries", "read everything in order", run_store_workload},
      {"mixed", "operations", "half gets, half puts of keys that are there, at random",
       run_store_workload},
      {"ttl", "keys", "keys that expire: unreadable when, and gone when", run_ttl},
      {"erase", "devices", "erase single devices: unreadable when, and gone when",
       run_erase_devices},
      {"ingest-http", "lines", "durable line protocol into a private daemon", run_ingest_http},
      {"ingest-mqtt", "messages", "QoS 1 through a private mosquitto", run_ingest_mqtt},
      {"ingest-listener", "messages", "QoS 1 straight into a private daemon", run_ingest_listener},
      {"recovery", "entries", "open a store whose log is full", run_recovery},
      {"query", "readings", "windows, all, and the last one, asked of a private daemon", run_query},
      {"encryption", "requests", "what encryption costs, at rest and on the way",
       run_encryption_cost},
      {"audit", "requests", "what the audit log costs, off, batched and strict", run_audit_cost},
      {"footprint", "readings", "memory, start time, bytes a reading", kElsewhere},
      {"ycsb-a", "operations", "half reads, half updates, hot keys", kElsewhere},
      {"ycsb-b", "operations", "95 % reads, 5 % updates, hot keys", kElsewhere},
      {"ycsb-c", "operations", "reads of hot keys", kElsewhere},
      {"ycsb-d", "operations", "95 % reads of the newest, 5 % inserts", kElsewhere},
      {"ycsb-e", "operations", "95 % short scans, 5 % inserts", kElsewhere},
      {"ycsb-f", "operations", "half reads, half read-modify-writes, hot keys", kElsewhere},
      {"ycsb", "operations", "all of them at 50 B and 16 KiB, beside the peers", kElsewhere},
      {"tenants", "gets", "eight tenants, apart and in one namespace", kElsewhere},
      {"neighbour", "operations", "a tenant beside one that writes all it can", kElsewhere},
      {"stall", "puts", "every put timed while compactions run", kElsewhere},
      {"casedb-writes", "puts", "CaseDB paper: writes at every size", kElsewhere},
      {"casedb-reads", "gets", "CaseDB paper: reads at every size, warm and cold", kElsewhere},
      {"casedb-metadata", "puts", "CaseDB paper: bytes of metadata to bytes of values", kElsewhere},
      {"casedb-coalescing", "puts", "CaseDB paper: small values in groups, and not", kElsewhere},
      {"casedb-amplification", "puts", "CaseDB paper: 90 % updates", kElsewhere},
      {"casedb-drives", "operations", "CaseDB paper: metadata, values, or both on the fast drive",
       kElsewhere},
      {"table2", "operations", "CaseDB paper: its table 2, a proof for each row", kElsewhere},
      {"logkv", "commands", "140 mixes of gets and puts, beside NaiveKV", kElsewhere},
      {"logkv-recovery", "commands", "kill -9 while writing: what is left", kElsewhere},
      {"gdprbench", "operations", "GDPRbench's roles, every answer checked", kElsewhere},
      {"papers", "experiments", "every experiment of the papers, and a report", kElsewhere},
  };
  return kWorkloads;
}

const Workload* find_workload(const std::string& name) {
  for (const Workload& workload : workloads()) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

namespace {

double in_microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1000.0;
}

// Three decimals are more than any of these figures repeats to.
double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

[[gnu::format(printf, 2, 3)]] void add_line(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
  text += '\n';
}

// Columns as wide as what stands in them, the last one as it is.
void add_table(std::string& text, const std::vector<std::vector<std::string>>& table) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const std::vector<std::string>& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += "  " + row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size(), ' ');
    }
    text += '\n';
  }
}

}  // namespace

std::string report_json(const Report& report) {
  nlohmann::ordered_json json;
  json["workload"] = report.workload;
  json["engine"] = report.engine;
  json["num"] = report.num;
  json["value_size"] = report.value_size;
  json["threads"] = report.threads;
  json["sync"] = report.sync;
  json["seed"] = report.seed;
  json["seconds"] = rounded(report.seconds);
  json["ops_per_second"] = rounded(report.ops_per_second());
  json["mb_per_second"] = rounded(report.mb_per_second());
  json["latency_us"] = {{"p50", in_microseconds(report.latency.percentile_ns(0.5))},
                        {"p95", in_microseconds(report.latency.percentile_ns(0.95))},
                        {"p99", in_microseconds(report.latency.percentile_ns(0.99))},
                        {"p999", in_microseconds(report.latency.percentile_ns(0.999))},
                        {"max", in_microseconds(report.latency.max_ns())}};
  json["write_amplification"] = rounded(report.write_amplification);
  json["space_amplification"] = rounded(report.space_amplification);
  json["peak_memory_bytes"] = report.peak_memory_bytes;
  json["version"] = wire::version();
  for (const auto& [name, text] : report.words) json[name] = text;
  for (const auto& [name, value] : report.more) json[name] = rounded(value);
  for (std::size_t row = 1; row < report.rows.size(); ++row) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < report.rows[row].size(); ++i) {
      object[report.rows.front()[i]] = report.rows[row][i];
    }
    json["rows"].push_back(std::move(object));
  }
  return json.dump();
}

std::string report_text(const Report& report, const std::string& operation) {
  std::string text;
  add_line(text, "%s (%s)", report.workload.c_str(), report.engine.c_str());
  add_line(text, "  %.0f %s/s, %.1f MB/s (%llu in %.2f s, %u threads, %s, seed %llu)",
           report.ops_per_second(), operation.c_str(), report.mb_per_second(),
           static_cast<unsigned long long>(report.num), report.seconds, report.threads,
           report.sync ? "synced" : "not synced", static_cast<unsigned long long>(report.seed));
  if (report.latency.count() > 0) {
    add_line(text, "  latency us: p50 %.1f  p95 %.1f  p99 %.1f  p99.9 %.1f  max %.1f",
             in_microseconds(report.latency.percentile_ns(0.5)),
             in_microseconds(report.latency.percentile_ns(0.95)),
             in_microseconds(report.latency.percentile_ns(0.99)),
             in_microseconds(report.latency.percentile_ns(0.999)),
             in_microseconds(report.latency.max_ns()));
  }
  if (report.write_amplification > 0) {
    add_line(text, "  write amplification %.2f, space amplification %.2f",
             report.write_amplification, report.space_amplification);
  }
  if (report.peak_memory_bytes > 0) {
    add_line(text, "  peak memory %.1f MiB",
             static_cast<double>(report.peak_memory_bytes) / (1 << 20));
  }
  for (const auto& [name, words] : report.words) text += "  " + name + ": " + words + "\n";
  if (!report.table.empty()) return text + report.table;
  for (const auto& [name, value] : report.more) {
    const int decimals = value == std::floor(value) ? 0 : 3;
    add_line(text, "  %s %.*f", name.c_str(), decimals, value);
  }
  add_table(text, report.rows);
  return text;
}

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
