// ingest-listener: QoS 1 publishers straight into a private daemon, everything acknowledged, that
// is, durable. First with pipelining (--batch messages on their way, of each of --threads
// publishers), then one publisher that waits for each acknowledgement, taking turns with plain
// fdatasync on the same drive, which is what a durable acknowledgement cannot be faster than.
#include "bench/workloads.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "bench/daemon_process.h"
#include "bench/histogram.h"
#include "bench/interrupt.h"
#include "bench/mqtt_load.h"
#include "bench/process_usage.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kUsualMessages = 2'000'000;
constexpr std::uint64_t kSmokeMessages = 5'000;
constexpr std::uint64_t kUsualWaits = 2'000;
constexpr std::uint64_t kSmokeWaits = 50;
constexpr std::uint32_t kPublishers = 2;
constexpr std::uint32_t kWindow = 8'000;  // a packet id has 16 bits
constexpr std::uint32_t kPayloadBytes = 50;
constexpr std::size_t kProbeFileBytes = 4u << 20;  // written over and over, as a log is
constexpr std::size_t kProbeBytes = 128;

std::uint64_t ns_since(SteadyClock::time_point start) {
  return static_cast<std::uint64_t>((SteadyClock::now() - start).count());
}

// A file of its own on the drive of the log, whose blocks are all there.
class SyncProbe {
 public:
  ~SyncProbe() {
    if (file_ >= 0) ::close(file_);
  }
  Status open(const std::string& path) {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const std::string zeros(kProbeFileBytes, '\0');
    const auto wanted = static_cast<ssize_t>(zeros.size());
    if (file_ < 0 || ::pwrite(file_, zeros.data(), zeros.size(), 0) != wanted ||
        ::fsync(file_) != 0) {
      return io_error("cannot write " + path);
    }
    return ok();
  }
  Status sync(Histogram& latency) {
    const std::string record(kProbeBytes, 'x');
    const auto begun = SteadyClock::now();
    const ssize_t written =
        ::pwrite(file_, record.data(), record.size(), static_cast<off_t>(at_ % kProbeFileBytes));
    if (written != static_cast<ssize_t>(record.size()) || ::fdatasync(file_) != 0) {
      return io_error("cannot sync the probe");
    }
    latency.add(ns_since(begun));
    at_ += kProbeBytes;
    return ok();
  }

 private:
  int file_ = -1;
  std::uint64_t at_ = 0;
};

class IngestListener {
 public:
  explicit IngestListener(const BenchOptions& options) : options_(options) {
    load_.publishers = options.threads_or(kPublishers);
    load_.messages = options.num_or(kUsualMessages, kSmokeMessages);
    load_.seed = options.seed;
    load_.payload_bytes = options.value_size_or(kPayloadBytes);
    load_.window = options.batch_or(kWindow);
  }

  Result<Report> run() {
    std::vector<double> seconds, cpu_us, waiting_p99_us, sync_p99_us, ratios;
    Report report;
    const std::uint32_t rounds = options_.rounds_or(3);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      EC_ASSIGN_OR_RETURN(const auto daemon,
                          DaemonProcess::create({options_.metadata, options_.values, "", true}));
      EC_TRY(daemon->start());
      EC_ASSIGN_OR_RETURN(const Endpoint endpoint, daemon->mqtt_endpoint());
      const ProcessUsage before = usage_of(daemon->id());
      EC_ASSIGN_OR_RETURN(const double took, publish_all(endpoint, load_));
      const ProcessUsage after = usage_of(daemon->id());
      seconds.push_back(took);
      cpu_us.push_back(static_cast<double>(after.cpu_ns - before.cpu_ns) / 1000 /
                       static_cast<double>(load_.messages));
      Histogram waiting, syncs;
      EC_TRY(wait_for_each(endpoint, daemon->directories().metadata + "/probe", waiting, syncs));
      waiting_p99_us.push_back(static_cast<double>(waiting.percentile_ns(0.99)) / 1000);
      sync_p99_us.push_back(static_cast<double>(syncs.percentile_ns(0.99)) / 1000);
      ratios.push_back(waiting_p99_us.back() / sync_p99_us.back());
      report.latency.merge(waiting);
      report.peak_memory_bytes =
          std::max(report.peak_memory_bytes, usage_of(daemon->id()).peak_resident_bytes);
    }
    report.workload = options_.workload;
    report.num = load_.messages;
    report.value_size = load_.payload_bytes;
    report.threads = load_.publishers;
    report.sync = true;
    report.seed = options_.seed;
    report.seconds = median(seconds);
    report.user_bytes = load_.messages * load_.payload_bytes;
    report.more = {{"rounds", rounds},
                   {"server_cpu_us_per_message", median(cpu_us)},
                   {"waiting_p99_us", median(waiting_p99_us)},
                   {"fdatasync_p99_us", median(sync_p99_us)},
                   {"ratio_to_fdatasync_p99", median(ratios)}};
    return report;
  }

 private:
  // One message on its way at a time, and a sync of the drive's own in between.
  Status wait_for_each(const Endpoint& endpoint, const std::string& probe_path, Histogram& waiting,
                       Histogram& syncs) const {
    SyncProbe probe;
    EC_TRY(probe.open(probe_path));
    EC_ASSIGN_OR_RETURN(MqttPublisher publisher,
                        MqttPublisher::connect(endpoint, "edgecase-bench-waiting"));
    const std::string payload(load_.payload_bytes, 'x');
    const std::uint64_t count = options_.smoke ? kSmokeWaits : kUsualWaits;
    for (std::uint64_t i = 0; i < count; ++i) {
      EC_TRY(check_interrupt());
      const auto begun = SteadyClock::now();
      EC_TRY(publisher.publish("sensors/waiting/s", payload));
      EC_TRY(publisher.finish());
      waiting.add(ns_since(begun));
      EC_TRY(probe.sync(syncs));
    }
    return ok();
  }

  BenchOptions options_;
  MqttLoad load_;
};

}  // namespace

Result<Report> run_ingest_listener(const BenchOptions& options) {
  return IngestListener(options).run();
}

}  // namespace edgecase::cli::bench
