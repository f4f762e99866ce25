// ingest-mqtt: QoS 1 publishers through a private mosquitto into a private daemon, until the daemon
// has stored every message; beside it a paho subscriber that stores nothing, at QoS 0 and 1,
// and at 1 with the window that the daemon has.
#include "bench/workloads.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "bench/daemon_process.h"
#include "bench/histogram.h"
#include "bench/interrupt.h"
#include "bench/mosquitto.h"
#include "bench/mqtt_load.h"
#include "bench/process_usage.h"

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

}  // namespace edgecase::cli::bench
