// What a daemon says of evictions: log lines and records of the audit log.
#pragma once

#include "audit/audit_log.h"
#include "observe/logger.h"
#include "retention/eviction.h"

namespace edgecase::app {

// Both outlive the events.
retention::EvictionEvents eviction_events(audit::AuditLog& audit, observe::Logger& logger);

}  // namespace edgecase::app
