#include "app/forward_setup.h"

#include <utility>

#include "config/validate.h"

namespace edgecase::app {
namespace {

audit::Record record_of_target(const char* operation, const std::string& name) {
  audit::Record record;
  record.operation = operation;
  record.actor = "daemon";
  record.reaches_more = true;  // of all devices
  record.detail = name;
  return record;
}

}  // namespace

Status check_forwarding(const config::Configuration& configuration) {
  std::size_t number = 0;
  const Status status = forward::check_targets(configuration.settings.forward, number);
  return status.ok() ? ok() : config::forward_error(configuration, number, status);
}

Result<std::unique_ptr<forward::Forwarding>> open_forwarding(forward::ForwardingParts parts,
                                                             const config::Settings& settings,
                                                             audit::AuditLog& audit) {
  const auto note = [&audit, &logger = parts.logger](audit::Record record) {
    if (const Status noted = audit.note(std::move(record)); !noted.ok())
      logger.log_keyed(observe::LogLevel::Warning, "audit", "forward", noted.message());
  };
  parts.configured = [note](const std::string& name, const std::string& to) {
    note(record_of_target("forward.configure", to.empty() ? name + ": no more" : name + ": " + to));
  };
  parts.sent = [note](const std::string& name, std::uint64_t readings) {
    audit::Record record = record_of_target("forward.sent", name);
    record.count = readings;
    note(std::move(record));
  };
  return forward::Forwarding::open(parts, settings.forward);
}

}  // namespace edgecase::app
