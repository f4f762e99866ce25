#include "http/scrub_status.h"

#include "query/damage.h"

namespace edgecase::http {
namespace {

using wire::Json;

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

}  // namespace edgecase::http
