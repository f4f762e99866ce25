#include "mqtt/message_time.h"

#include <string>

#include "wire/decimal.h"
#include "wire/time_text.h"

namespace edgecase::mqtt {
namespace {

int shift_of(TimeFormat format, const wire::ExactDecimal& decimal) {
  switch (format) {
    case TimeFormat::Unix: return 9;
    case TimeFormat::UnixMs: return 6;
    case TimeFormat::UnixUs: return 3;
    case TimeFormat::UnixNs: return 0;
    default: break;
  }
  const int whole_digits = decimal.whole_digits();
  if (whole_digits <= 11) return 9;
  if (whole_digits <= 14) return 6;
  return whole_digits <= 17 ? 3 : 0;
}

Status bad_time(std::string_view text, std::string_view what) {
  constexpr std::size_t kShownBytes = 64;
  return invalid_argument("time \"" + std::string(text.substr(0, kShownBytes)) + "\" " +
                          std::string(what));
}

Result<std::int64_t> parse_rfc3339(std::string_view text, const wire::TimeZone* zone) {
  EC_ASSIGN_OR_RETURN(const wire::DateTime time, wire::parse_date_time(text));
  if (!time.has_clock) return bad_time(text, "is a date alone");
  if (!time.offset_seconds && zone == nullptr)
    return bad_time(text, "has no offset from UTC; time-zone says whose clock it is");
  return wire::instant_of(time, text, zone);
}

}  // namespace

Result<TimeFormat> parse_time_format(std::string_view name) {
  if (name == "auto" || name.empty()) return TimeFormat::Auto;
  if (name == "rfc3339") return TimeFormat::Rfc3339;
  if (name == "unix") return TimeFormat::Unix;
  if (name == "unix_ms") return TimeFormat::UnixMs;
  if (name == "unix_us") return TimeFormat::UnixUs;
  if (name == "unix_ns") return TimeFormat::UnixNs;
  return invalid_argument("time-format: \"" + std::string(name) +
                          "\": one of auto, rfc3339, unix, unix_ms, unix_us, unix_ns");
}

Result<std::int64_t> parse_message_time_ns(std::string_view text, TimeFormat format,
                                           const wire::TimeZone* zone) {
  if (format == TimeFormat::Rfc3339) return parse_rfc3339(text, zone);
  const auto decimal = wire::read_exact_decimal(text);
  if (!decimal) {
    if (format == TimeFormat::Auto) return parse_rfc3339(text, zone);
    return bad_time(text, "is not a number");
  }
  const auto time_ns = wire::scaled(*decimal, shift_of(format, *decimal));
  if (!time_ns) return bad_time(text, "is out of range");
  return *time_ns;
}

bool says_last_heard(std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  const std::string_view name = slash == pointer.npos ? pointer : pointer.substr(slash + 1);
  return name == "last_seen" || name == "lastSeen" || name == "lastseen";
}

bool is_time_without_offset(std::string_view text) {
  const auto time = wire::parse_date_time(text);
  return time.ok() && time->has_clock && !time->offset_seconds;
}

}  // namespace edgecase::mqtt
