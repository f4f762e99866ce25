// New readings as they are stored: /api/v1/tail. A client asks again and again, each time with the
// cursor that the last answer gave it; no worker waits for readings.
#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "http/http_routes.h"
#include "http/refusal.h"
#include "wire/reading_format.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

using Position = ingest::ReadingFeed::Position;

// What one answer holds at most; the rest comes with the next one.
constexpr std::size_t kTailPageBytes = 256u << 10;

std::string cursor_text(const Position& position) {
  return std::to_string(position.epoch) + "-" + std::to_string(position.next);
}

bool take_number(std::string_view text, std::uint64_t& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc{} && stop == text.data() + text.size();
}

Result<std::optional<Position>> cursor_parameter(const Call& call) {
  if (!call.has("cursor")) return std::optional<Position>();
  const std::string text = call.parameter("cursor");
  const std::size_t split = std::min(text.find('-'), text.size());
  const std::string_view whole = text;
  Position position;
  if (!take_number(whole.substr(0, split), position.epoch) || split == text.size() ||
      !take_number(whole.substr(split + 1), position.next)) {
    return invalid_argument("cursor is none that an answer of this path gave");
  }
  return std::optional<Position>(position);
}

Result<wire::ReadingFormat> format_parameter(const Call& call) {
  if (!call.has("format")) return wire::ReadingFormat::Ndjson;
  EC_ASSIGN_OR_RETURN(const wire::ReadingFormat format,
                      wire::parse_reading_format(call.parameter("format")));
  if (format == wire::ReadingFormat::Json) {
    return invalid_argument("json is one document and has no end here; use ndjson");
  }
  return format;
}

Status answer_tail(HttpContext& context, Call& call) {
  EC_TRY(check_parameters(call, {"ns", "select", "cursor", "limit", "format", "purpose"}));
  EC_ASSIGN_OR_RETURN(const wire::Selector selector, selector_parameter(call));
  EC_ASSIGN_OR_RETURN(const auto position, cursor_parameter(call));
  EC_ASSIGN_OR_RETURN(const wire::ReadingFormat format, format_parameter(call));
  EC_ASSIGN_OR_RETURN(const query::ReadingFilter is_meant,
                      context.parts.query.filter(call.principal(), namespace_parameter(call),
                                                 selector, call.parameter("purpose")));
  EC_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> limit, limit_parameter(call));
  wire::ReadingFormatter formatter(format);
  std::string text;
  std::uint64_t count = 0;
  std::set<std::pair<std::string, std::string>> devices;
  if (!position) formatter.begin(text);
  const auto page = context.parts.ingest.feed().read(position, [&](const wire::Reading& reading) {
    if (!is_meant(reading)) return true;
    if (text.size() >= kTailPageBytes || count == limit) return false;
    formatter.reading(reading, text);
    devices.emplace(reading.namespace_name, reading.device);
    ++count;
    return true;
  });
  call.response.set_header(wire::routes::kCursorHeader, cursor_text(page.next));
  call.exchange.audit.count = count;
  query::Reach& reach = call.exchange.audit.reach.emplace();
  for (const auto& [namespace_name, device] : devices) reach.add(namespace_name, device);
  call.response.set_header(wire::routes::kReadingsHeader, std::to_string(count));
  if (page.gap || page.missed > 0) {
    call.response.set_header(wire::routes::kMissedHeader,
                             page.gap ? "unknown" : std::to_string(page.missed));
  }
  call.answer_text(200, std::string(wire::content_type_of(format)).c_str(), std::move(text));
  return ok();
}

}  // namespace

void add_tail_route(Router& router, HttpContext& context) {
  router.add("GET", wire::routes::kTail, Effect::Reads, [&context](Call& call) {
    if (const Status status = answer_tail(context, call); !status.ok()) call.answer_error(status);
  });
}

}  // namespace edgecase::http
