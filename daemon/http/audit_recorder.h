// What the HTTP face puts into the audit log: reads, changes, and whatever was denied. Readings
// that are stored are recorded where that happens, by the pipeline.
#pragma once

#include "http/http_routes.h"

namespace edgecase::http {

// Has the router call the recorder around every route. Without a log, or with the mode off, nothing
// is done. In strict mode a change begins, and an answer leaves, once its record is durable; where
// that can not be had, the answer is 503.
void record_requests(Router& router, HttpContext& context);

}  // namespace edgecase::http
