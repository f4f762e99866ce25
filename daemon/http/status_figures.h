// Parts of /api/v1/status with their figures in /metrics: drives that take no writes, what was
// given up to make room, what reading all files again has found, readings without a time.
#pragma once

#include <functional>
#include <string_view>

#include "edgecase/stats.h"
#include "http/http_routes.h"
#include "observe/metrics.h"
#include "wire/json_values.h"

namespace edgecase::http {

// One of few words: full, read-only, io-error, away, damaged, other; empty for Ok.
std::string_view degraded_reason(const Status& degraded);
// edgecase_engine_degraded_since_seconds and edgecase_engine_degraded_reason, of either layer.
void register_drive_metrics(observe::Metrics& metrics, const std::function<Stats()>& stats);

// "eviction".
wire::Json eviction_status(const HttpContext& context);
wire::Json tiers_status(const HttpContext& context);
void register_eviction_metrics(HttpContext& context);

// "scrub".
wire::Json scrub_status(const HttpContext& context, const ScrubStats& stats);
void register_scrub_metrics(HttpContext& context);

// "clock.undated": what arrived without a time while the clock was not trusted.
wire::Json undated_status(const HttpContext& context);
void register_undated_metrics(HttpContext& context);

}  // namespace edgecase::http
