// What /metrics says of a drive that takes no writes: since when, and why.
#pragma once

#include <functional>
#include <string_view>

#include "edgecase/stats.h"
#include "observe/metrics.h"

namespace edgecase::http {

// One of few words: full, read-only, io-error, away, damaged, other; empty for Ok.
std::string_view degraded_reason(const Status& degraded);

// edgecase_engine_degraded_since_seconds and edgecase_engine_degraded_reason, of either layer.
void register_drive_metrics(observe::Metrics& metrics, const std::function<Stats()>& stats);

}  // namespace edgecase::http
