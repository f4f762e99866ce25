// What reading all files again has found, in the status and among the metrics.
#pragma once

#include "http/http_routes.h"
#include "wire/json_values.h"

namespace edgecase::http {

// "scrub" of /api/v1/status.
wire::Json scrub_status(const HttpContext& context, const ScrubStats& stats);
void register_scrub_metrics(HttpContext& context);

}  // namespace edgecase::http
