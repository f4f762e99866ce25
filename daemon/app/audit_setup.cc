#include "app/audit_setup.h"

#include "wire/time_text.h"
#include "wire/version.h"

namespace edgecase::app {
namespace {

audit::Mode mode_of(const std::string& text) {
  if (text == "off") return audit::Mode::Off;
  return text == "strict" ? audit::Mode::Strict : audit::Mode::Batched;
}

audit::Record record_of_daemon(const char* operation) {
  audit::Record record;
  record.operation = operation;
  record.actor = "daemon";
  return record;
}

}  // namespace

Result<std::unique_ptr<audit::AuditLog>> open_audit_log(const config::Settings& settings,
                                                        Engine& engine, Clock& clock,
                                                        observe::Logger& logger) {
  audit::AuditOptions options;
  options.mode = mode_of(settings.audit.mode);
  if (settings.audit.retention != "forever") {
    EC_ASSIGN_OR_RETURN(options.retention_ns, wire::parse_duration_ns(settings.audit.retention));
  }
  options.size_limit_bytes = settings.audit.size_limit_bytes;
  options.head_directory = settings.storage.values;
  options.spare_directory = settings.storage.metadata;
  EC_ASSIGN_OR_RETURN(std::unique_ptr<audit::AuditLog> log,
                      audit::AuditLog::open(options, {.engine = engine,
                                                      .file_system = posix_file_system(),
                                                      .clock = clock,
                                                      .random = system_random(),
                                                      .logger = &logger}));
  audit::Record started = record_of_daemon("daemon.start");
  started.detail = "version " + std::string(wire::version()) + ", audit " + settings.audit.mode;
  // A drive that takes no writes now holds up no start: the record waits.
  if (const Status noted = log->note(std::move(started)); !noted.ok()) {
    logger.warning("audit", noted.message());
  }
  return log;
}

void note_stop(audit::AuditLog& log) {
  // What can not be written now is logged by stop().
  static_cast<void>(log.append(record_of_daemon("daemon.stop")).ok());
  log.stop();
}

}  // namespace edgecase::app
