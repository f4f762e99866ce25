// Writes times and retentions as JSON answers have them, and the end of an answer.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "edgecase/retention.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::wire {

using Json = nlohmann::ordered_json;

// What is no UTF-8 becomes U+FFFD.
inline std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
// One line.
inline std::string dump(const Json& json) {
  return compact(json) + "\n";
}

inline std::string time_text(std::int64_t time_ns) {
  std::string text;
  append_time(time_ns, text);
  return text;
}

inline Json time_or_null(const std::optional<std::int64_t>& time_ns) {
  return time_ns ? Json(time_text(*time_ns)) : Json(nullptr);
}

// "30d", or "forever".
inline std::string keep_text(std::int64_t retention_ns) {
  return retention_ns == kRetentionForever ? "forever" : format_duration(retention_ns);
}

}  // namespace edgecase::wire
