// One table: status code, name in JSON, HTTP status, exit code (CONTRACT sections 1 and 6).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound = 3;
inline constexpr int kExitNotAllowed = 4;
inline constexpr int kExitUnreachable = 5;
inline constexpr int kExitPartly = 6;
inline constexpr int kExitCorruption = 7;

std::string_view error_code_name(StatusCode code);  // "not_found"
StatusCode status_code_of(std::string_view error_code_name);
int http_status_of(
    StatusCode code);  // Busy, OutOfSpace, IoError, Unavailable: 503; LimitReached: 400
int exit_code_of(StatusCode code);

// {"error":{"code":"…","message":"…","line":n?}}
std::string error_json(const Status& status, std::uint64_t line = 0);

}  // namespace edgecase::wire
