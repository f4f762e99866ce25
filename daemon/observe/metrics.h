// Counters, gauges and histograms by name and labels, and their Prometheus text (GET /metrics).
//
// Use: ask the registry once for each metric and keep the reference; updating is one relaxed atomic
// operation. Values that somebody already counts are registered as a callback and read when the
// text is made. Thread-safe. A metric lives as long as its registry; a callback must stay valid
// until the registry is destroyed or clear_callbacks() was called.
//
// Names are `edgecase_<area>_<what>_<unit>`, counters end in `_total`. Labels are few and bounded:
// at most kSeriesMax metrics exist, later ones are counted in one metric that is not shown.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace edgecase::observe {

class Counter {
 public:
  void add(std::uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t by) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Counts durations. Buckets are powers of four from 16 us to 67 s: coarse, but each costs 8 bytes.
class Histogram {
 public:
  static constexpr std::size_t kBuckets = 12;
  static constexpr std::int64_t kFirstBoundNs = 16'384;

  void observe_ns(std::int64_t elapsed_ns);

  // At most this many nanoseconds fall into bucket `index`; the bucket after the last has no bound.
  static std::int64_t bound_ns(std::size_t index) { return kFirstBoundNs << (2 * index); }
  std::uint64_t bucket(std::size_t index) const {
    return counts_[index].load(std::memory_order_relaxed);
  }
  std::int64_t sum_ns() const { return sum_ns_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets + 1> counts_{};
  std::atomic<std::int64_t> sum_ns_{0};
};

using Labels = std::vector<std::pair<std::string, std::string>>;

enum class MetricKind : unsigned char { Counter, Gauge };

class Metrics {
 public:
  static constexpr std::size_t kSeriesMax = 512;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The same name and labels give the same object. `help` of the first call is shown.
  Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, const Labels& labels = {});
  // Called by render() on its thread; must be quick and thread-safe. A second registration of the
  // same name and labels replaces the first.
  void callback(MetricKind kind, std::string_view name, std::string_view help, const Labels& labels,
                std::function<double()> value);
  // Before what callbacks refer to goes away. Waits for a render() that is under way.
  void clear_callbacks();

  // Prometheus text format 0.0.4, families in order of name.
  std::string render() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A counter with the values of its labels, as text of the same format, for what is told to some
// askers alone and is in no registry. Nothing without values.
std::string render_counter(std::string_view name, std::string_view help,
                           const std::vector<std::pair<Labels, std::uint64_t>>& values);

}  // namespace edgecase::observe
