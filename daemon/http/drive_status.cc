#include "http/drive_status.h"

#include <string>
#include <system_error>

namespace edgecase::http {
namespace {

constexpr std::string_view kReasons[] = {"full", "read-only", "io-error",
                                         "away", "damaged",   "other"};

struct Layer {
  const char* name;
  LayerStats Stats::*stats;
};
constexpr Layer kLayers[] = {{"metadata", &Stats::metadata}, {"values", &Stats::values}};

// The engine tells an error of the system by its text alone.
bool is_of(const Status& status, std::errc error) {
  const std::string text = std::generic_category().message(static_cast<int>(error));
  return status.message().find(text) != std::string_view::npos;
}

}  // namespace

std::string_view degraded_reason(const Status& degraded) {
  switch (degraded.code()) {
    case StatusCode::Ok: return "";
    case StatusCode::OutOfSpace: return "full";
    case StatusCode::NotFound:
    case StatusCode::Unavailable: return "away";
    case StatusCode::Corruption: return "damaged";
    case StatusCode::IoError:
      if (is_of(degraded, std::errc::read_only_file_system)) return "read-only";
      if (is_of(degraded, std::errc::no_such_device)) return "away";
      if (is_of(degraded, std::errc::no_such_device_or_address)) return "away";
      return "io-error";
    default: return "other";
  }
}

void register_drive_metrics(observe::Metrics& metrics, const std::function<Stats()>& stats) {
  using observe::MetricKind;
  for (const Layer& layer : kLayers) {
    metrics.callback(MetricKind::Gauge, "edgecase_engine_degraded_since_seconds",
                     "Unix time since when the layer takes no writes; 0 while it does.",
                     {{"layer", layer.name}}, [stats, member = layer.stats] {
                       const LayerStats now = stats().*member;
                       return now.degraded.ok() ? 0.0
                                                : static_cast<double>(now.degraded_since_ns) / 1e9;
                     });
    for (const std::string_view reason : kReasons) {
      metrics.callback(MetricKind::Gauge, "edgecase_engine_degraded_reason",
                       "1 for the reason why the layer takes no writes.",
                       {{"layer", layer.name}, {"reason", std::string(reason)}},
                       [stats, member = layer.stats, reason] {
                         return degraded_reason((stats().*member).degraded) == reason ? 1.0 : 0.0;
                       });
    }
  }
}

}  // namespace edgecase::http
