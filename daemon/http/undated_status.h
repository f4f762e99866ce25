// What arrived without a time while the clock was not trusted, in the status and among the metrics.
#pragma once

#include "http/http_routes.h"
#include "wire/json_values.h"

namespace edgecase::http {

// "clock.undated" of /api/v1/status.
wire::Json undated_status(const HttpContext& context);
void register_undated_metrics(HttpContext& context);

}  // namespace edgecase::http
