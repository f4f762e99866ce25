// A request that is answered with an error before, or instead of, running its route.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::http {

inline constexpr int kRetryAfterSeconds = 1;

// Instead of an HTTP status: whoever asks speaks TLS, and gets an alert of it.
inline constexpr int kAlert = 1;

struct Refusal {
  int http_status = 0;  // 0: none
  Status status;
};

Refusal bad_request(std::string message);
Refusal too_large(std::string message);
Refusal overloaded(std::string message);

// Whether clients of Influx ask here: their errors are strings.
bool is_influx_path(std::string_view path);

// The body of an error answer (http/API.md) on `path`.
std::string error_body(std::string_view path, const Status& status);

// A whole answer that ends the connection. `target` may be what was sent, however malformed.
// `date` as in the header of that name; "": none.
std::string refusal_text(std::string_view target, const Refusal& refusal,
                         const std::string& date = {});

}  // namespace edgecase::http
