#include "http/drive_status.h"

#include <cerrno>
#include <string>

namespace edgecase::http {
namespace {

constexpr std::string_view kReasons[] = {"full", "read-only", "io-error",
                                         "away", "damaged",   "other"};

struct Layer {
  const char* name;
  LayerStats Stats::*stats;
};
constexpr Layer kLayers[] = {{"metadata", &Stats::metadata}, {"values", &Stats::values}};

}  // namespace

std::string_view degraded_reason(const Status& degraded) {
  switch (degraded.code()) {
    case StatusCode::Ok: return "";
    case StatusCode::OutOfSpace: return "full";
    case StatusCode::NotFound:
    case StatusCode::Unavailable: return "away";
    case StatusCode::Corruption: return "damaged";
    case StatusCode::IoError:
      switch (degraded.system_error()) {
        case EROFS: return "read-only";
        case ENODEV:
        case ENXIO: return "away";
        default: return "io-error";
      }
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
