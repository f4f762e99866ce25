#include "app/audit_setup.h"

#include <string>
#include <utility>

#include "wire/json_values.h"
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

namespace {

constexpr std::uint64_t kBytesPerMiB = 1u << 20;

std::string text_of(const retention::EvictionStep& step) {
  return std::string(step.is_exact ? "" : "about ") + std::to_string(step.readings) +
         " readings from before " + wire::time_text(step.before_ns) + " (about " +
         std::to_string(step.value_bytes / kBytesPerMiB) + " MiB); " + step.drive + " had " +
         std::to_string(step.free_bytes / kBytesPerMiB) + " MiB free, less than " +
         std::to_string(step.watermark_bytes / kBytesPerMiB);
}

audit::Record record_of_step(const retention::EvictionStep& step, audit::Outcome outcome) {
  audit::Record record;
  record.operation = "evict";
  record.actor = "daemon";
  record.outcome = outcome;
  record.count = step.readings;
  record.reaches_more = true;  // of all devices
  record.detail = "before " + wire::time_text(step.before_ns);
  return record;
}

}  // namespace

void tell_tiers(const config::StorageSettings& storage, bool has_tiers, observe::Logger& logger) {
  if (storage.expiry == "exact" && has_tiers) {
    logger.warning("tiers",
                   "storage.expiry is exact, and rules have tiers: bytes of readings that "
                   "become windows go within minutes, not within a second");
  }
  if (storage.on_full == "thin-oldest" && !has_tiers) {
    logger.warning("tiers",
                   "storage.on-full is thin-oldest, and no rule of retention has tiers: full "
                   "drives refuse writes");
  }
}

tiers::TierEvents tier_events(observe::Logger& logger) {
  return {.left = [&logger](const std::string& problem) {
    logger.warning("tiers", "some readings do not become windows yet: " + problem);
  }};
}

retention::EvictionEvents eviction_events(audit::AuditLog& audit, observe::Logger& logger) {
  // On a full drive a record may have to wait: it does not hold up what makes room.
  const auto note = [&audit, &logger](audit::Record record) {
    if (const Status noted = audit.note(std::move(record)); !noted.ok())
      logger.log_keyed(observe::LogLevel::Warning, "audit", "evict", noted.message());
  };
  retention::EvictionEvents events;
  events.begun = [note](const retention::EvictionStep& step) {
    note(record_of_step(step, audit::Outcome::Begun));
  };
  events.done = [note, &logger](const retention::EvictionStep& step, const Status& status) {
    note(record_of_step(step, audit::outcome_of(status)));
    if (status.ok()) {
      logger.notice("evict", "gave up " + text_of(step));
    } else {
      logger.log_keyed(observe::LogLevel::Warning, "evict", "failed",
                       "cannot give up " + text_of(step) + ": " + status.to_string());
    }
  };
  events.thinned = [note, &logger](const retention::Thinned& thinned, const std::string& drive) {
    audit::Record record;
    record.operation = "thin";
    record.actor = "daemon";
    record.outcome = audit::Outcome::Ok;
    record.count = thinned.readings;
    record.reaches_more = true;  // of all devices
    record.detail = "before " + wire::time_text(thinned.before_ns);
    note(std::move(record));
    logger.notice("evict", std::to_string(thinned.readings) + " readings from before " +
                               wire::time_text(thinned.before_ns) + " became " +
                               std::to_string(thinned.windows) + " windows (about " +
                               std::to_string(thinned.value_bytes / kBytesPerMiB) +
                               " MiB go), since " + drive + " is short of room" +
                               (thinned.left.empty() ? "" : "; not all: " + thinned.left));
  };
  events.blocked = [&logger](const std::string& why) {
    logger.warning("evict", "room is needed, and nothing is given up: " + why);
  };
  return events;
}

}  // namespace edgecase::app
