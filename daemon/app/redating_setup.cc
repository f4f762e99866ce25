#include "app/redating_setup.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

#include "wire/json_values.h"

namespace edgecase::app {
namespace {

constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";
// The unit says it, since it hides that file.
constexpr const char* kBootIdVariable = "EDGECASE_BOOT_ID";

constexpr std::size_t kBootIdDigits = 32;

// With hyphens or without.
std::string hex_digits_of(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) == 0; });
  return digits;
}

std::string bounds_of(const ingest::UndatedPeriod& period) {
  return (period.is_estimate ? "estimated, not before " : "not before ") +
         wire::time_text(period.not_before_ns) + ", not after " +
         wire::time_text(period.not_after_ns);
}

}  // namespace

std::string this_boot_id(Random& random) {
  std::string text;
  if (const char* said = std::getenv(kBootIdVariable); said != nullptr) {
    text = said;
  } else {
    std::ifstream file(kBootIdFile);
    std::getline(file, text);
  }
  const std::string digits = hex_digits_of(text);
  if (digits.size() == kBootIdDigits) return digits;
  return "process-" + std::to_string(random.next());
}

ingest::RedatingEvents redating_events(audit::AuditLog& audit, observe::Logger& logger) {
  ingest::RedatingEvents events;
  events.done = [&audit, &logger](const ingest::RedatedPeriod& done) {
    const std::string bounds = bounds_of(done.period);
    audit::Record record;
    record.operation = "redate";
    record.actor = "daemon";
    record.count = done.readings;
    record.reaches_more = true;  // of all devices
    record.detail = bounds;
    if (const Status noted = audit.note(std::move(record)); !noted.ok())
      logger.log_keyed(observe::LogLevel::Warning, "audit", "redate", noted.message());
    std::string text =
        std::to_string(done.readings) +
        " readings that came while the clock was not trusted have their time: " + bounds;
    if (done.refused > 0)
      text += "; " + std::to_string(done.refused) + " more are gone: erased or evicted meanwhile";
    logger.notice("redate", text);
  };
  events.failed = [&logger](const Status& status) {
    logger.log_keyed(observe::LogLevel::Warning, "redate", "failed",
                     "readings without a time still wait for it: " + status.to_string());
  };
  return events;
}

}  // namespace edgecase::app
