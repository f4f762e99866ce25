// What was given up to make room, in the status and among the metrics.
#pragma once

#include "http/http_routes.h"
#include "wire/json_values.h"

namespace edgecase::http {

// "eviction" of /api/v1/status.
wire::Json eviction_status(const HttpContext& context);
void register_eviction_metrics(HttpContext& context);

}  // namespace edgecase::http
