#include "observe/metrics.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <variant>

#include "edgecase/mutex.h"

namespace edgecase::observe {
namespace {

enum class FamilyKind : unsigned char { Counter, Gauge, Histogram };

constexpr const char* kKindNames[] = {"counter", "gauge", "histogram"};

// {device="kitchen",sensor="te\"mp"}; empty without labels.
std::string label_text(const Labels& labels) {
  if (labels.empty()) return {};
  std::string text = "{";
  for (const auto& [name, value] : labels) {
    if (text.size() > 1) text += ',';
    text += name + "=\"";
    for (const char c : value) {
      if (c == '\n') {
        text += "\\n";
        continue;
      }
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + "}";
}

void append_number(double value, std::string& out) {
  char text[64];
  if (value == std::floor(value) && std::fabs(value) < 1e15) {
    std::snprintf(text, sizeof text, "%.0f", value);
  } else {
    std::snprintf(text, sizeof text, "%.9g", value);
  }
  out += text;
}

// `labels` with one more at the end.
std::string with_label(const std::string& labels, const std::string& label) {
  if (labels.empty()) return "{" + label + "}";
  return labels.substr(0, labels.size() - 1) + "," + label + "}";
}

void append_histogram(const std::string& name, const std::string& labels,
                      const Histogram& histogram, std::string& out) {
  std::uint64_t running = 0;
  for (std::size_t i = 0; i <= Histogram::kBuckets; ++i) {
    running += histogram.bucket(i);
    std::string bound = "+Inf";
    if (i < Histogram::kBuckets) {
      bound.clear();
      append_number(static_cast<double>(Histogram::bound_ns(i)) / 1e9, bound);
    }
    out += name + "_bucket" + with_label(labels, "le=\"" + bound + "\"") + " " +
           std::to_string(running) + "\n";
  }
  out += name + "_sum" + labels + " ";
  append_number(static_cast<double>(histogram.sum_ns()) / 1e9, out);
  out += "\n" + name + "_count" + labels + " " + std::to_string(running) + "\n";
}

}  // namespace

void Histogram::observe_ns(std::int64_t elapsed_ns) {
  std::size_t index = 0;
  while (index < kBuckets && elapsed_ns > bound_ns(index)) ++index;
  counts_[index].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(elapsed_ns, std::memory_order_relaxed);
}

struct Metrics::State {
  using Callback = std::function<double()>;
  using Metric = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>,
                              std::unique_ptr<Histogram>, Callback>;
  struct Family {
    FamilyKind kind = FamilyKind::Counter;
    std::string help;
    std::map<std::string, Metric> metrics;  // by label text
  };

  mutable Mutex mutex;
  std::map<std::string, Family, std::less<>> families EC_GUARDED_BY(mutex);
  std::size_t count EC_GUARDED_BY(mutex) = 0;
  Counter spare_counter;
  Gauge spare_gauge;
  Histogram spare_histogram;

  // Null when the registry is full or the name is taken by another kind.
  Metric* find_or_make(FamilyKind kind, std::string_view name, std::string_view help,
                       const Labels& labels, Metric made) EC_REQUIRES(mutex) {
    auto family = families.find(name);
    if (family == families.end()) {
      if (count >= kSeriesMax) return nullptr;
      family = families.emplace(std::string(name), Family{kind, std::string(help), {}}).first;
    }
    if (family->second.kind != kind) return nullptr;
    std::string text = label_text(labels);
    auto found = family->second.metrics.find(text);
    if (found != family->second.metrics.end()) return &found->second;
    if (count >= kSeriesMax) return nullptr;
    ++count;
    return &family->second.metrics.emplace(std::move(text), std::move(made)).first->second;
  }

  template <typename T>
  T& get(FamilyKind kind, std::string_view name, std::string_view help, const Labels& labels,
         T& spare) EC_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    Metric* metric = find_or_make(kind, name, help, labels, std::make_unique<T>());
    if (metric == nullptr) return spare;
    auto* owned = std::get_if<std::unique_ptr<T>>(metric);
    return owned == nullptr ? spare : **owned;
  }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(std::string_view name, std::string_view help, const Labels& labels) {
  return state_->get(FamilyKind::Counter, name, help, labels, state_->spare_counter);
}

Gauge& Metrics::gauge(std::string_view name, std::string_view help, const Labels& labels) {
  return state_->get(FamilyKind::Gauge, name, help, labels, state_->spare_gauge);
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help, const Labels& labels) {
  return state_->get(FamilyKind::Histogram, name, help, labels, state_->spare_histogram);
}

void Metrics::callback(MetricKind kind, std::string_view name, std::string_view help,
                       const Labels& labels, std::function<double()> value) {
  const MutexLock lock(state_->mutex);
  const FamilyKind family = kind == MetricKind::Counter ? FamilyKind::Counter : FamilyKind::Gauge;
  State::Metric* metric = state_->find_or_make(family, name, help, labels, State::Callback());
  if (metric != nullptr) *metric = std::move(value);
}

void Metrics::clear_callbacks() {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  for (auto& [name, family] : state.families) {
    state.count -= std::erase_if(family.metrics, [](const auto& entry) {
      return std::holds_alternative<State::Callback>(entry.second);
    });
  }
}

std::string Metrics::render() const {
  const MutexLock lock(state_->mutex);
  std::string out;
  for (const auto& [name, family] : state_->families) {
    if (family.metrics.empty()) continue;
    out += "# HELP " + name + " " + family.help + "\n# TYPE " + name + " " +
           kKindNames[static_cast<std::size_t>(family.kind)] + "\n";
    for (const auto& [labels, metric] : family.metrics) {
      if (const auto* histogram = std::get_if<std::unique_ptr<Histogram>>(&metric)) {
        append_histogram(name, labels, **histogram, out);
        continue;
      }
      out += name + labels + " ";
      if (const auto* counter = std::get_if<std::unique_ptr<Counter>>(&metric)) {
        out += std::to_string((*counter)->value());
      } else if (const auto* gauge = std::get_if<std::unique_ptr<Gauge>>(&metric)) {
        out += std::to_string((*gauge)->value());
      } else {
        append_number(std::get<State::Callback>(metric)(), out);
      }
      out += '\n';
    }
  }
  return out;
}

std::string render_counter(std::string_view name, std::string_view help,
                           const std::vector<std::pair<Labels, std::uint64_t>>& values) {
  if (values.empty()) return {};
  std::string out = "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " +
                    std::string(name) + " counter\n";
  for (const auto& [labels, value] : values)
    out += std::string(name) + label_text(labels) + " " + std::to_string(value) + "\n";
  return out;
}

}  // namespace edgecase::observe
