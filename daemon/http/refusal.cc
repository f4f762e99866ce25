#include "http/refusal.h"

#include <nlohmann/json.hpp>

#include "wire/errors.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

std::string_view reason_phrase(int http_status) {
  switch (http_status) {
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 408: return "Request Timeout";
    case 413: return "Payload Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
  }
  return "Error";
}

}  // namespace

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
        wire::routes::kInfluxHealth, wire::routes::kInfluxReady, wire::routes::kInfluxQuery}) {
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
  const std::string body = error_body(target.substr(0, target.find('?')), refusal.status);
  std::string text = "HTTP/1.1 " + std::to_string(refusal.http_status) + " ";
  text += reason_phrase(refusal.http_status);
  text += "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size());
  if (!date.empty()) text += "\r\nDate: " + date;
  if (refusal.http_status == 503) {
    text += "\r\nRetry-After: " + std::to_string(kRetryAfterSeconds);
  }
  return text + "\r\nConnection: close\r\n\r\n" + body;
}

}  // namespace edgecase::http
