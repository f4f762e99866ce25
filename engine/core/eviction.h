// Chooses what gives way when a drive is full: the oldest entries of all namespaces that may go. It
// reckons by what value files say of themselves, without reading any. Stateless.
#pragma once

#include "edgecase/retention.h"
#include "expiry/retention_rules.h"
#include "version/version.h"

namespace edgecase::engine {

// As Engine::plan_eviction(). `rules` say what was given up before; null: nothing.
Eviction plan_eviction(const EvictionRequest& request, const Version& version,
                       const RetentionRules* rules);

}  // namespace edgecase::engine
