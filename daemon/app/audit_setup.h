// The audit log of a daemon: opened as the settings say, with the records of its start and stop,
// and of evictions.
#pragma once

#include <memory>

#include "audit/audit_log.h"
#include "config/settings.h"
#include "observe/logger.h"
#include "retention/eviction.h"
#include "tiers/tier_maker.h"

namespace edgecase::app {

// Says that the daemon starts.
Result<std::unique_ptr<audit::AuditLog>> open_audit_log(const config::Settings& settings,
                                                        Engine& engine, Clock& clock,
                                                        observe::Logger& logger);
// The last record; ends the log.
void note_stop(audit::AuditLog& log);

// What a daemon says of tiers: where settings do not go with them, and what did not become windows.
void tell_tiers(const config::StorageSettings& storage, bool has_tiers, observe::Logger& logger);
tiers::TierEvents tier_events(observe::Logger& logger);
// What a daemon says of evictions: log lines and records. Both outlive the events.
retention::EvictionEvents eviction_events(audit::AuditLog& audit, observe::Logger& logger);

}  // namespace edgecase::app
