#include "http/eviction_status.h"

#include <optional>

namespace edgecase::http {
namespace {

using observe::MetricKind;
using wire::Json;

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
  json["first"] = wire::time_or_null(status.first_at_ns);
  json["last"] = wire::time_or_null(status.last_at_ns);
  json["before"] = wire::time_or_null(status.before_ns);
  json["refused_readings"] = status.refused_readings;
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

}  // namespace edgecase::http
