// Forwarding as the daemon has it: with the audit log's records of which targets there are, and of
// how much went where.
#pragma once

#include <memory>

#include "audit/audit_log.h"
#include "config/configuration.h"
#include "forward/forwarding.h"

namespace edgecase::app {

// The files of [[forward]] can be used. Errors begin with the setting's place.
Status check_forwarding(const config::Configuration& configuration);

// `parts` without its functions; `audit` outlives what is made.
Result<std::unique_ptr<forward::Forwarding>> open_forwarding(forward::ForwardingParts parts,
                                                             const config::Settings& settings,
                                                             audit::AuditLog& audit);

}  // namespace edgecase::app
