#include "http/undated_status.h"

namespace edgecase::http {

using observe::MetricKind;
using wire::Json;

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
