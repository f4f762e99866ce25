// Parts of /api/v1/status with their figures in /metrics: drives that take no writes, what was
// given up to make room, what reading all files again has found, readings without a time.
#include "http/http_routes.h"

#include <cerrno>
#include <optional>
#include <string>

#include "query/left_out.h"

namespace edgecase::http {

using observe::MetricKind;
using wire::Json;

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

namespace {

constexpr double kNsOfSecond = 1e9;

double unix_seconds(const std::optional<std::int64_t>& time_ns) {
  return time_ns ? static_cast<double>(*time_ns) / kNsOfSecond : 0.0;
}

}  // namespace

Json eviction_status(const HttpContext& context) {
  Json json = {{"on_full", context.parts.settings.storage.on_full}};
  if (context.parts.eviction == nullptr) return json;
  const retention::EvictionStatus status = context.parts.eviction->status();
  json["makes_room"] = status.is_on && status.makes_room;
  json["blocked"] = status.blocked.empty() ? Json(nullptr) : Json(status.blocked);
  json["evictions"] = status.evictions;
  json["readings"] = status.readings;
  json["bytes"] = status.value_bytes;
  json["thinned_readings"] = status.thinned_readings;
  json["thinned_windows"] = status.thinned_windows;
  json["first"] = wire::time_or_null(status.first_at_ns);
  json["last"] = wire::time_or_null(status.last_at_ns);
  json["before"] = wire::time_or_null(status.before_ns);
  json["refused_readings"] = status.refused_readings;
  return json;
}

Json tiers_status(const HttpContext& context) {
  Json json = {{"series", context.parts.retention.marks().size()}};
  if (context.parts.tiers == nullptr) return json;
  const tiers::TierStatus status = context.parts.tiers->status();
  json["windows"] = status.windows;
  json["readings"] = status.readings;
  json["problem"] = status.problem.empty() ? Json(nullptr) : Json(status.problem);
  return json;
}

void register_eviction_metrics(HttpContext& context) {
  if (context.parts.eviction == nullptr) return;
  using Number = double (*)(const retention::EvictionStatus&);
  const auto add = [&](MetricKind kind, const char* name, const char* help, Number number) {
    context.parts.metrics.callback(kind, name, help, {}, [&context, number] {
      return number(context.parts.eviction->status());
    });
  };
  using S = const retention::EvictionStatus&;
  add(MetricKind::Counter, "edgecase_evictions_total", "Times that the oldest readings made room.",
      [](S s) { return static_cast<double>(s.evictions); });
  add(MetricKind::Counter, "edgecase_evicted_readings_total", "Readings given up to make room.",
      [](S s) { return static_cast<double>(s.readings); });
  add(MetricKind::Counter, "edgecase_evicted_bytes_total", "What they took of value files, about.",
      [](S s) { return static_cast<double>(s.value_bytes); });
  add(MetricKind::Counter, "edgecase_thinned_for_room_readings_total",
      "Readings that became windows before their time to make room.",
      [](S s) { return static_cast<double>(s.thinned_readings); });
  add(MetricKind::Counter, "edgecase_eviction_refused_readings_total",
      "Readings refused since their times were evicted.",
      [](S s) { return static_cast<double>(s.refused_readings); });
  add(MetricKind::Gauge, "edgecase_eviction_first_seconds",
      "Unix time of the first eviction since the start; 0: none.",
      [](S s) { return unix_seconds(s.first_at_ns); });
  add(MetricKind::Gauge, "edgecase_evicted_before_seconds",
      "Unix time: every reading older than this was evicted; 0: none.",
      [](S s) { return unix_seconds(s.before_ns); });
  add(MetricKind::Gauge, "edgecase_eviction_blocked",
      "1 while room is needed and nothing can be given up.",
      [](S s) { return s.blocked.empty() ? 0.0 : 1.0; });
}

namespace {

Json lost_series(const query::LostSeries& lost) {
  Json json = {{"namespace", lost.namespace_name}};
  if (lost.device.empty()) return json;
  json["device"] = lost.device;
  json["sensor"] = lost.sensor;
  json["from"] = lost.from_ns == INT64_MIN ? Json(nullptr) : Json(wire::time_text(lost.from_ns));
  json["to"] = lost.to_ns == INT64_MAX ? Json(nullptr) : Json(wire::time_text(lost.to_ns));
  return json;
}

Json damage(const query::Damage& found) {
  Json lost = Json::array();
  for (const query::LostSeries& each : found.lost) lost.push_back(lost_series(each));
  return {{"path", found.file.path},
          {"problem", found.file.problem},
          {"found", wire::time_text(found.file.found_ns)},
          {"unreadable_entries", found.file.lost_entries},
          {"lost", std::move(lost)},
          {"lost_more", found.lost_more}};
}

}  // namespace

Json scrub_status(const HttpContext& context, const ScrubStats& stats) {
  Json damaged = Json::array();
  for (const query::Damage& found : query::find_damage(context.parts.engine, context.parts.catalog))
    damaged.push_back(damage(found));
  return {{"every", context.parts.settings.storage.scrub},
          {"files", stats.files},
          {"read_bytes", stats.bytes},
          {"passes", stats.passes},
          {"damaged_files", stats.damaged_files},
          {"damaged", std::move(damaged)}};
}

void register_scrub_metrics(HttpContext& context) {
  const auto add = [&](observe::MetricKind kind, const char* name, const char* help,
                       std::uint64_t ScrubStats::*member) {
    context.parts.metrics.callback(kind, name, help, {}, [&context, member] {
      return static_cast<double>(context.parts.engine.stats().scrub.*member);
    });
  };
  using observe::MetricKind;
  add(MetricKind::Counter, "edgecase_scrub_files_total", "Files read again in idle time.",
      &ScrubStats::files);
  add(MetricKind::Counter, "edgecase_scrub_bytes_total", "Bytes of them.", &ScrubStats::bytes);
  add(MetricKind::Counter, "edgecase_scrub_passes_total", "Times that all files had their turn.",
      &ScrubStats::passes);
  add(MetricKind::Gauge, "edgecase_scrub_damaged_files",
      "Files that are not what they were when they were written.", &ScrubStats::damaged_files);
}

Json undated_status(const HttpContext& context) {
  if (context.parts.redating == nullptr) return nullptr;
  const ingest::RedatingStatus status = context.parts.redating->status();
  Json estimates = Json::array();
  for (const ingest::UndatedPeriod& each : status.estimates) {
    estimates.push_back({{"from", wire::time_text(each.dated_ns(each.first_ns()))},
                         {"not_before", wire::time_text(each.not_before_ns)},
                         {"not_after", wire::time_text(each.not_after_ns)}});
  }
  return {{"waiting_periods", status.waiting_periods},
          {"redated_readings", status.redated_readings},
          {"refused_readings", status.refused_readings},
          {"estimates", std::move(estimates)}};
}

void register_undated_metrics(HttpContext& context) {
  if (context.parts.redating == nullptr) return;
  using S = const ingest::RedatingStatus&;
  using Number = double (*)(S);
  const auto add = [&](MetricKind kind, const char* name, const char* help, Number number) {
    context.parts.metrics.callback(kind, name, help, {}, [&context, number] {
      return number(context.parts.redating->status());
    });
  };
  add(MetricKind::Gauge, "edgecase_undated_periods",
      "Times of an untrusted clock whose readings have no time yet.",
      [](S s) { return static_cast<double>(s.waiting_periods); });
  add(MetricKind::Counter, "edgecase_redated_readings_total",
      "Readings given their time once the clock was right.",
      [](S s) { return static_cast<double>(s.redated_readings); });
  add(MetricKind::Counter, "edgecase_redating_refused_readings_total",
      "Readings dropped then, since their time had been erased or evicted.",
      [](S s) { return static_cast<double>(s.refused_readings); });
}

}  // namespace edgecase::http
