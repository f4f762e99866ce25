#include "bench/ingest_http.h"

#include <algorithm>

#include "bench/daemon_process.h"
#include "bench/directories.h"
#include "bench/histogram.h"
#include "bench/interrupt.h"
#include "bench/line_load.h"
#include "bench/process_usage.h"
#include "bench/truck_lines.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualLines = 200'000;
constexpr std::uint64_t kSmokeLines = 2'000;
constexpr std::uint32_t kHttpLinesPerRequest = 1'000;
constexpr std::uint32_t kConnections = 2;
constexpr const char* kHttpDatabase = "bench";

struct HttpRun {
  LoadResult load;
  std::uint64_t lines = 0;
  std::uint64_t readings = 0;
  std::uint64_t table_bytes = 0;  // of EdgeCase
  ProcessUsage usage;
};

double lines_per_second(const HttpRun& run) {
  return static_cast<double>(run.lines) / run.load.seconds;
}

// The server's processor time, kernel included: a figure that other work on the machine disturbs
// little.
double cpu_us_per_reading(const HttpRun& run) {
  return static_cast<double>(run.usage.cpu_ns) / 1000 / static_cast<double>(run.readings);
}

class IngestHttp {
 public:
  IngestHttp(const BenchOptions& options, StartServer* start_influx)
      : options_(options), start_influx_(start_influx) {
    lines_.lines = options.num_or(kUsualLines, kSmokeLines);
    lines_.lines_per_body = options.batch_or(kHttpLinesPerRequest);
    lines_.seed = options.seed;
    const TruckLines made = make_truck_lines(lines_);
    readings_per_line_ = static_cast<double>(made.fields) / static_cast<double>(lines_.lines);
    requests_ = make_write_requests(made.bodies, kHttpDatabase);
  }

  Result<Report> run() {
    const bool beside_influx = start_influx_ != nullptr && options_.has_peer("influxdb");
    const std::uint32_t rounds = options_.rounds_or(3);
    std::vector<HttpRun> own;
    std::vector<double> influx, influx_cpu_us;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      EC_ASSIGN_OR_RETURN(HttpRun run, into_edgecase());
      own.push_back(std::move(run));
      if (!beside_influx) continue;
      EC_ASSIGN_OR_RETURN(run, into_influx());
      influx.push_back(lines_per_second(run));
      influx_cpu_us.push_back(cpu_us_per_reading(run));
    }
    std::sort(own.begin(), own.end(), [](const HttpRun& a, const HttpRun& b) {
      return lines_per_second(a) < lines_per_second(b);
    });
    Report report = report_of(own[(own.size() - 1) / 2]);
    report.more.emplace_back("rounds", rounds);
    if (beside_influx) {
      report.more.emplace_back("influxdb_ops_per_second", median(influx));
      report.more.emplace_back("influxdb_cpu_us_per_reading", median(influx_cpu_us));
      report.more.emplace_back("ratio_to_influxdb", report.ops_per_second() / median(influx));
    }
    return report;
  }

 private:
  Result<HttpRun> into(const Endpoint& endpoint, pid_t server) {
    EC_TRY(create_database(endpoint, kHttpDatabase));
    const ProcessUsage before = usage_of(server);
    HttpRun run;
    EC_ASSIGN_OR_RETURN(run.load, send_all(endpoint, requests_, options_.threads_or(kConnections),
                                           options_.seconds));
    run.lines = std::min<std::uint64_t>(run.load.requests * lines_.lines_per_body, lines_.lines);
    run.readings = static_cast<std::uint64_t>(static_cast<double>(run.lines) * readings_per_line_);
    run.usage = usage_of(server);
    run.usage.written_bytes -= before.written_bytes;
    run.usage.cpu_ns -= before.cpu_ns;
    return run;
  }

  Result<HttpRun> into_edgecase() {
    EC_ASSIGN_OR_RETURN(const auto daemon,
                        DaemonProcess::create({.metadata_parent = options_.metadata,
                                               .values_parent = options_.values,
                                               .broker = "",
                                               .transport = Transport::Tcp}));
    EC_TRY(daemon->start());
    // As InfluxDB is reached.
    EC_ASSIGN_OR_RETURN(const Endpoint endpoint, daemon->tcp_endpoint());
    EC_ASSIGN_OR_RETURN(HttpRun run, into(endpoint, daemon->id()));
    daemon->stop();
    EC_ASSIGN_OR_RETURN(run.table_bytes, table_bytes(daemon->directories()));
    return run;
  }

  Result<HttpRun> into_influx() {
    EC_ASSIGN_OR_RETURN(const auto influx, start_influx_(options_.metadata));
    return into(influx->endpoint(), influx->id());
  }

  Report report_of(HttpRun& run) const {
    Report report;
    report.workload = options_.workload;
    report.num = run.lines;
    report.value_size = 8;
    report.threads = options_.threads_or(kConnections);
    report.sync = true;
    report.seed = options_.seed;
    report.seconds = run.load.seconds;
    report.user_bytes = run.load.bytes;
    report.latency = run.load.latency;
    report.peak_memory_bytes = run.usage.peak_resident_bytes;
    const auto bytes = static_cast<double>(run.load.bytes);
    report.write_amplification = static_cast<double>(run.usage.written_bytes) / bytes;
    report.more.emplace_back("readings_per_second", report.ops_per_second() * readings_per_line_);
    report.more.emplace_back("server_cpu_us_per_reading", cpu_us_per_reading(run));
    report.more.emplace_back("stored_mb", static_cast<double>(run.table_bytes) / 1e6);
    return report;
  }

  BenchOptions options_;
  StartServer* const start_influx_;
  TruckLineOptions lines_;
  double readings_per_line_ = 0;
  std::vector<std::string> requests_;
};

}  // namespace

Result<Report> run_ingest_http(const BenchOptions& options) {
  return ingest_http_beside(nullptr, options);
}

Result<Report> ingest_http_beside(StartServer* start_influx, const BenchOptions& options) {
  return IngestHttp(options, start_influx).run();
}

}  // namespace edgecase::cli::bench
