#include "observe/metrics.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "observe/logger.h"

namespace edgecase::observe {
namespace {

class StoppedClock final : public Clock {
 public:
  std::int64_t wall_ns() const override { return 0; }
  std::int64_t boot_ns() const override { return 0; }
  ClockTrust trust() const override { return ClockTrust::Trusted; }
};

TEST_CASE("metrics render as families in order of name") {
  Metrics metrics;
  metrics.gauge("b_bytes", "Bytes held.").set(-3);
  metrics.counter("a_total", "Things.", {{"kind", "one"}}).add(2);
  metrics.counter("a_total", "Things.", {{"kind", "tw\"o\\\n"}}).add();
  metrics.callback(MetricKind::Gauge, "c_ratio", "A share.", {}, [] { return 0.25; });
  CHECK(metrics.render() ==
        "# HELP a_total Things.\n# TYPE a_total counter\n"
        "a_total{kind=\"one\"} 2\na_total{kind=\"tw\\\"o\\\\\\n\"} 1\n"
        "# HELP b_bytes Bytes held.\n# TYPE b_bytes gauge\nb_bytes -3\n"
        "# HELP c_ratio A share.\n# TYPE c_ratio gauge\nc_ratio 0.25\n");
}

TEST_CASE("the same name and labels are the same metric") {
  Metrics metrics;
  CHECK(&metrics.counter("a_total", "A.", {{"x", "1"}}) ==
        &metrics.counter("a_total", "A.", {{"x", "1"}}));
  CHECK(&metrics.counter("a_total", "A.", {{"x", "1"}}) !=
        &metrics.counter("a_total", "A.", {{"x", "2"}}));
}

TEST_CASE("a histogram counts each duration in every bucket above it") {
  Metrics metrics;
  Histogram& histogram = metrics.histogram("h_seconds", "H.", {{"x", "1"}});
  histogram.observe_ns(Histogram::kFirstBoundNs);
  histogram.observe_ns(Histogram::kFirstBoundNs + 1);
  histogram.observe_ns(Histogram::bound_ns(Histogram::kBuckets - 1) + 1);
  CHECK(histogram.bucket(0) == 1);
  CHECK(histogram.bucket(1) == 1);
  CHECK(histogram.bucket(Histogram::kBuckets) == 1);
  const std::string text = metrics.render();
  CHECK(text.find("h_seconds_bucket{x=\"1\",le=\"1.6384e-05\"} 1\n") != std::string::npos);
  CHECK(text.find("h_seconds_bucket{x=\"1\",le=\"+Inf\"} 3\n") != std::string::npos);
  CHECK(text.find("h_seconds_count{x=\"1\"} 3\n") != std::string::npos);
}

TEST_CASE("labels without end do not take memory without end") {
  Metrics metrics;
  for (std::size_t i = 0; i < 2 * Metrics::kSeriesMax; ++i) {
    metrics.counter("a_total", "A.", {{"x", std::to_string(i)}}).add();
  }
  const std::string text = metrics.render();
  CHECK(text.find("{x=\"511\"}") != std::string::npos);
  CHECK(text.find("{x=\"512\"}") == std::string::npos);
}

TEST_CASE("cleared callbacks are not called") {
  Metrics metrics;
  metrics.callback(MetricKind::Counter, "a_total", "A.", {}, [] { return 1.0; });
  metrics.clear_callbacks();
  CHECK(metrics.render().empty());
}

TEST_CASE("many threads count exactly") {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics] {
      for (int i = 0; i < 1000; ++i) metrics.counter("a_total", "A.").add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(metrics.counter("a_total", "A.").value() == 4000);
}

TEST_CASE("engine events become metrics") {
  Metrics metrics;
  StoppedClock clock;
  Logger logger(-1, LogStyle::Plain, clock);
  EngineEvents events(logger, metrics);
  events.on_flushed({.entries = 7, .value_bytes = 100, .metadata_bytes = 10, .elapsed_ns = 5});
  events.on_degraded("values", out_of_space("full"));
  const std::string text = metrics.render();
  CHECK(text.find("edgecase_engine_flushed_entries_total 7\n") != std::string::npos);
  CHECK(text.find("edgecase_engine_degraded{layer=\"values\"} 1\n") != std::string::npos);
  events.on_resumed("values");
  CHECK(metrics.render().find("edgecase_engine_degraded{layer=\"values\"} 0\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace edgecase::observe
