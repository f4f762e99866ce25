#include "http/refusal.h"

#include <nlohmann/json.hpp>

#include "http/response.h"
#include "wire/errors.h"
#include "wire/routes.h"

namespace edgecase::http {
Refusal bad_request(std::string message) {
  return {400, invalid_argument(std::move(message))};
}
Refusal too_large(std::string message) {
  return {413, invalid_argument(std::move(message))};
}
Refusal overloaded(std::string message) {
  return {503, busy(std::move(message))};
}

bool is_influx_path(std::string_view path) {
  for (const std::string_view influx :
       {wire::routes::kInfluxWrite, wire::routes::kInfluxWriteV2, wire::routes::kInfluxPing,
        wire::routes::kInfluxHealth, wire::routes::kInfluxReady, wire::routes::kInfluxQuery,
        wire::routes::kInfluxQueryV2, wire::routes::kInfluxBuckets, wire::routes::kInfluxOrgs}) {
    if (path == influx) return true;
  }
  return false;
}

std::string error_body(std::string_view path, const Status& status) {
  if (!is_influx_path(path)) return wire::error_json(status) + "\n";
  const nlohmann::ordered_json body = {{"error", status.message()},
                                       {"code", wire::error_code_name(status.code())},
                                       {"message", status.message()}};
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string refusal_text(std::string_view target, const Refusal& refusal, const std::string& date) {
  // A record of an alert (RFC 8446, section 6): fatal, handshake_failure.
  if (refusal.http_status == kAlert) return {"\x15\x03\x01\x00\x02\x02\x28", 7};
  Response response;
  response.status = refusal.http_status;
  response.set_header("Content-Type", "application/json");
  if (!date.empty()) response.set_header("Date", date);
  if (refusal.http_status == 503) {
    response.set_header("Retry-After", std::to_string(kRetryAfterSeconds));
  }
  response.body = error_body(target.substr(0, target.find('?')), refusal.status);
  return head_text(response, false, true) + response.body;
}

}  // namespace edgecase::http
