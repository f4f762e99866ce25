#include <algorithm>

#include "bench/experiments/experiments.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualReadings = 10'000'000;
constexpr std::uint64_t kSmokeReadings = 20'000;
constexpr std::uint64_t kRegularReadings = 1'000'000;
constexpr std::uint32_t kFields = 10;
constexpr std::uint32_t kDevices = 100;  // times kFields: a thousand series
constexpr std::uint32_t kLinesPerRequest = 1'000;
constexpr std::uint64_t kLinesPerPart = 100'000;  // made and sent at a time: they take memory here
constexpr int kSettleMs = 2'000;

double mebibytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

// `lines` lines of the shape, sent part by part; a part begins where the one before it ended.
Result<LoadResult> send_lines(const Endpoint& endpoint, SensorLineOptions shape,
                              std::uint64_t lines) {
  LoadResult total;
  for (std::uint64_t done = 0; done < lines;) {
    shape.lines = std::min(kLinesPerPart, lines - done);
    EC_ASSIGN_OR_RETURN(
        const LoadResult part,
        send_all(endpoint, make_write_requests(make_sensor_bodies(shape), "bench"), 2, 0));
    total.seconds += part.seconds;
    total.bytes += part.bytes;
    total.latency.merge(part.latency);
    done += shape.lines;
    shape.start_ns += static_cast<std::int64_t>(shape.lines / shape.devices) * 1'000'000'000;
    ++shape.seed;
  }
  return total;
}

Result<double> bytes_per_regular_reading(const BenchOptions& options, std::uint64_t readings) {
  EC_ASSIGN_OR_RETURN(const auto daemon,
                      DaemonProcess::create({options.metadata, options.values, ""}));
  EC_TRY(daemon->start());
  EC_TRY(create_database(daemon->endpoint(), "bench"));
  SensorLineOptions shape;
  shape.devices = 1;
  shape.fields = 1;  // temperature, one decimal
  shape.lines_per_body = kLinesPerRequest;
  shape.seed = options.seed;
  EC_TRY(send_lines(daemon->endpoint(), shape, readings).status());
  daemon->stop();
  EC_ASSIGN_OR_RETURN(const std::uint64_t bytes, table_bytes(daemon->directories()));
  return static_cast<double>(bytes) / static_cast<double>(readings);
}

struct Idle {
  double start_ms = 0;
  double resident_mib = 0;
};

Result<Idle> measure_idle(const BenchOptions& options) {
  std::vector<double> start_ms, resident_mib;
  for (std::uint32_t round = 0; round < options.rounds_or(3); ++round) {
    EC_TRY(check_interrupt());
    EC_ASSIGN_OR_RETURN(const auto daemon,
                        DaemonProcess::create({options.metadata, options.values, ""}));
    EC_TRY(daemon->start());
    start_ms.push_back(static_cast<double>(daemon->start_ns()) / 1e6);
    sleep_ms(kSettleMs);
    resident_mib.push_back(mebibytes(usage_of(daemon->id()).resident_bytes));
  }
  return Idle{median(start_ms), median(resident_mib)};
}

}  // namespace

Result<Report> run_footprint(const BenchOptions& options) {
  Report report;
  report.workload = options.workload;
  report.value_size = 8;
  report.threads = 2;
  report.sync = true;
  report.seed = options.seed;
  report.num = options.num_or(kUsualReadings, kSmokeReadings);

  EC_ASSIGN_OR_RETURN(const Idle idle, measure_idle(options));
  EC_ASSIGN_OR_RETURN(const auto daemon,
                      DaemonProcess::create({options.metadata, options.values, ""}));
  EC_TRY(daemon->start());
  EC_TRY(create_database(daemon->endpoint(), "bench"));
  SensorLineOptions shape;
  shape.devices = kDevices;
  shape.fields = kFields;
  shape.lines_per_body = kLinesPerRequest;
  shape.seed = options.seed;
  EC_ASSIGN_OR_RETURN(const LoadResult load,
                      send_lines(daemon->endpoint(), shape, report.num / kFields));
  report.seconds = load.seconds;
  report.user_bytes = load.bytes;
  report.latency = load.latency;
  const ProcessUsage loaded = usage_of(daemon->id());
  report.peak_memory_bytes = loaded.peak_resident_bytes;
  report.write_amplification =
      static_cast<double>(loaded.written_bytes) / static_cast<double>(load.bytes);
  sleep_ms(kSettleMs);
  const ProcessUsage settled = usage_of(daemon->id());
  daemon->stop();
  EC_ASSIGN_OR_RETURN(const std::uint64_t bytes, table_bytes(daemon->directories()));
  EC_ASSIGN_OR_RETURN(const double regular,
                      bytes_per_regular_reading(options, std::min(kRegularReadings, report.num)));
  report.more = {
      {"start_ms", idle.start_ms},
      {"idle_resident_mib", idle.resident_mib},
      {"loaded_resident_mib", mebibytes(loaded.resident_bytes)},
      {"loaded_anonymous_mib", mebibytes(loaded.resident_anonymous_bytes)},
      {"settled_resident_mib", mebibytes(settled.resident_bytes)},
      {"bytes_per_reading", static_cast<double>(bytes) / static_cast<double>(report.num)},
      {"bytes_per_regular_reading", regular}};
  return report;
}

}  // namespace edgecase::cli::bench
