// Says in the log, and of what is held in the audit log too, when expiry stops to go with the clock
// and when it does again. One thread.
#pragma once

#include "audit/audit_log.h"
#include "edgecase/stats.h"
#include "observe/logger.h"

namespace edgecase::app {

class ExpiryWatch {
 public:
  // Both outlive it.
  ExpiryWatch(observe::Logger& logger, audit::AuditLog& audit) : logger_(logger), audit_(audit) {}

  void look(const ExpiryStats& stats);

 private:
  void note(const char* operation, std::uint64_t bytes);

  observe::Logger& logger_;
  audit::AuditLog& audit_;
  ExpiryWait wait_ = ExpiryWait::None;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace edgecase::app
