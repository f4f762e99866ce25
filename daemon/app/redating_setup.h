// Sets up the dating of undated readings: the id of this boot, and the log lines and audit records
// when readings are dated later.
#pragma once

#include <string>

#include "audit/audit_log.h"
#include "edgecase/random.h"
#include "ingest/redating.h"
#include "observe/logger.h"

namespace edgecase::app {

// The kernel's. Where that cannot be read, one of this process alone: then a restart of the daemon
// counts as one of the board, and what waits for the clock is dated by estimate.
std::string this_boot_id(Random& random);

// Both outlive the events.
ingest::RedatingEvents redating_events(audit::AuditLog& audit, observe::Logger& logger);

}  // namespace edgecase::app
