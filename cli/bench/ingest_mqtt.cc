#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kUsualMqttMessages = 300'000;
constexpr std::uint64_t kSmokeMqttMessages = 500;
constexpr std::uint32_t kMqttPublishers = 4;
constexpr double kMqttStartSeconds = 20;
constexpr double kStallSeconds = 60;  // without progress: something is lost
constexpr int kPollMs = 5;

double elapsed_seconds(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Sum of the value column of CSV rows.
std::uint64_t sum_of_values(std::string_view csv) {
  std::uint64_t sum = 0;
  for (std::size_t row = csv.find('\n'); row != std::string_view::npos; row = csv.find('\n', row)) {
    std::size_t column = ++row;
    for (int i = 0; i < 4 && column != std::string_view::npos; ++i) {
      column = csv.find(',', column);
      if (column != std::string_view::npos) ++column;
    }
    double value = 0;
    if (column == std::string_view::npos) break;
    std::from_chars(csv.data() + column, csv.data() + csv.size(), value);
    sum += static_cast<std::uint64_t>(value);
  }
  return sum;
}

Result<std::uint64_t> stored(HttpClient& client, const std::string& selector) {
  EC_ASSIGN_OR_RETURN(const std::string csv, client.get("/api/v1/query?select=" + selector +
                                                        "&every=36500d&agg=count&format=csv"));
  return sum_of_values(csv);
}

// How much the daemon has stored of what came from the broker.
Result<std::uint64_t> durable_readings(HttpClient& client) {
  constexpr std::string_view kName = "\nedgecase_mqtt_readings_total ";
  EC_ASSIGN_OR_RETURN(const std::string metrics, client.get("/metrics"));
  const std::size_t at = metrics.find(kName);
  std::uint64_t readings = 0;
  if (at == std::string::npos) return io_error("/metrics tells no readings of MQTT");
  std::from_chars(metrics.data() + at + kName.size(), metrics.data() + metrics.size(), readings);
  return readings;
}

// ingest-mqtt: QoS 1 publishers through a private mosquitto into a private daemon, until the daemon
// has stored every message; beside it a paho subscriber that stores nothing, at QoS 0 and 1,
// and at 1 with the window that the daemon has.
class IngestMqtt {
 public:
  explicit IngestMqtt(const BenchOptions& options)
      : options_(options),
        messages_(options.num_or(kUsualMqttMessages, kSmokeMqttMessages)),
        publishers_(options.threads_or(kMqttPublishers)) {}

  Result<Report> run() {
    std::vector<double> own, published, qos0, qos1, wide;
    const std::uint32_t rounds = options_.rounds_or(3);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      EC_ASSIGN_OR_RETURN(const double to_daemon, into_edgecase(published));
      own.push_back(to_daemon);
      EC_ASSIGN_OR_RETURN(const double at_0, into_counter(0));
      qos0.push_back(at_0);
      EC_ASSIGN_OR_RETURN(const double at_1, into_counter(1));
      qos1.push_back(at_1);
      EC_ASSIGN_OR_RETURN(const double at_1_wide,
                          into_counter(1, CountingSubscriber::Window::Wide));
      wide.push_back(at_1_wide);
    }
    Report report;
    report.workload = options_.workload;
    report.num = messages_;
    report.value_size = 8;
    report.threads = publishers_;
    report.sync = true;
    report.seed = options_.seed;
    report.seconds = median(own);
    report.user_bytes = messages_ * 16;  // a time and a number
    report.peak_memory_bytes = peak_;
    const auto rate = [this](const std::vector<double>& seconds) {
      return static_cast<double>(messages_) / median(seconds);
    };
    report.more = {{"rounds", rounds},
                   {"published_per_second", rate(published)},
                   {"paho_qos0_per_second", rate(qos0)},
                   {"paho_qos1_per_second", rate(qos1)},
                   {"paho_qos1_wide_per_second", rate(wide)},
                   {"ratio_to_paho_qos0", rate(own) / rate(qos0)},
                   {"ratio_to_paho_qos1", rate(own) / rate(qos1)},
                   {"ratio_to_paho_qos1_wide", rate(own) / rate(wide)}};
    return report;
  }

 private:
  // Seconds from the first message published to the last one stored.
  Result<double> into_edgecase(std::vector<double>& published) {
    EC_ASSIGN_OR_RETURN(const auto broker, MosquittoProcess::start(options_.metadata));
    EC_ASSIGN_OR_RETURN(
        const auto daemon,
        DaemonProcess::create({options_.metadata, options_.values,
                               "mqtt://127.0.0.1:" + std::to_string(broker->port())}));
    EC_TRY(daemon->start());
    HttpClient client(daemon->endpoint());
    EC_TRY(wait_for_subscription(*broker, client));
    EC_ASSIGN_OR_RETURN(const std::uint64_t probes, durable_readings(client));
    const auto start = SteadyClock::now();
    EC_ASSIGN_OR_RETURN(const double publishing, publish_all(broker->endpoint(), load()));
    published.push_back(publishing);
    // Readings beside those of the probe. Counted by the daemon, so that asking costs it next to
    // nothing.
    EC_TRY(wait_for(start, [&]() -> Result<std::uint64_t> {
      EC_ASSIGN_OR_RETURN(const std::uint64_t durable, durable_readings(client));
      return durable - std::min(durable, probes);
    }));
    const double seconds = elapsed_seconds(start);
    EC_ASSIGN_OR_RETURN(const std::uint64_t found, stored(client, "node-*"));
    if (found < messages_) return io_error("readings are missing");
    peak_ = std::max(peak_, usage_of(daemon->id()).peak_resident_bytes);
    return seconds;
  }

  // What a broker takes before anyone subscribed is gone: publish until something arrives.
  Status wait_for_subscription(const MosquittoProcess& broker, HttpClient& client) {
    EC_ASSIGN_OR_RETURN(MqttPublisher probe,
                        MqttPublisher::connect(broker.endpoint(), "edgecase-bench-probe"));
    const auto start = SteadyClock::now();
    for (;;) {
      EC_TRY(probe.publish("sensors/probe/ready", "1"));
      EC_TRY(probe.finish());
      EC_ASSIGN_OR_RETURN(const std::uint64_t arrived, stored(client, "probe"));
      if (arrived > 0) return ok();
      if (elapsed_seconds(start) > kMqttStartSeconds) {
        return unavailable("the daemon does not subscribe at the broker");
      }
      EC_TRY(check_interrupt());
      sleep_ms(kPollMs);
    }
  }

  Result<double> into_counter(
      int qos, CountingSubscriber::Window window = CountingSubscriber::Window::Usual) {
    EC_ASSIGN_OR_RETURN(const auto broker, MosquittoProcess::start(options_.metadata));
    EC_ASSIGN_OR_RETURN(const auto counter,
                        CountingSubscriber::connect(broker->port(), qos, window));
    const auto start = SteadyClock::now();
    EC_ASSIGN_OR_RETURN(const double publishing, publish_all(broker->endpoint(), load()));
    (void)publishing;
    EC_TRY(wait_for(start, [&] { return Result<std::uint64_t>(counter->messages()); }));
    return elapsed_seconds(start);
  }

  MqttLoad load() const {
    return {.publishers = publishers_, .messages = messages_, .seed = options_.seed};
  }

  // Until `count` has reached messages_.
  template <typename Count>
  Status wait_for(SteadyClock::time_point start, const Count& count) {
    std::uint64_t before = 0;
    double progress = elapsed_seconds(start);
    for (;;) {
      EC_TRY(check_interrupt());
      EC_ASSIGN_OR_RETURN(const std::uint64_t now, count());
      if (now >= messages_) return ok();
      if (now > before) progress = elapsed_seconds(start);
      before = now;
      if (elapsed_seconds(start) - progress > kStallSeconds) {
        return io_error("only " + std::to_string(now) + " of " + std::to_string(messages_) +
                        " messages arrived");
      }
      sleep_ms(kPollMs);
    }
  }

  BenchOptions options_;
  const std::uint64_t messages_;
  const std::uint32_t publishers_;
  std::uint64_t peak_ = 0;
};

}  // namespace

Result<Report> run_ingest_mqtt(const BenchOptions& options) {
  return IngestMqtt(options).run();
}

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

// ingest-listener: QoS 1 publishers straight into a private daemon, everything acknowledged, that
// is, durable. First with pipelining (--batch messages on their way, of each of --threads
// publishers), then one publisher that waits for each acknowledgement, taking turns with plain
// fdatasync on the same drive, which is what a durable acknowledgement cannot be faster than.
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
