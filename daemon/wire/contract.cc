#include "wire/contract.h"

#include <array>

#include <nlohmann/json.hpp>

namespace edgecase::wire {
namespace {

struct Row {
  StatusCode code;
  std::string_view name;
  int http;
  int exit;
};

constexpr std::array kRows = {
    Row{StatusCode::Ok, "ok", 200, kExitOk},
    Row{StatusCode::NotFound, "not_found", 404, kExitNotFound},
    Row{StatusCode::InvalidArgument, "invalid_argument", 400, kExitUsage},
    Row{StatusCode::AlreadyExists, "already_exists", 409, kExitFailed},
    Row{StatusCode::NotAllowed, "not_allowed", 403, kExitNotAllowed},
    Row{StatusCode::Busy, "busy", 503, kExitFailed},
    Row{StatusCode::LimitReached, "limit_reached", 400, kExitFailed},
    Row{StatusCode::OutOfSpace, "out_of_space", 503, kExitFailed},
    Row{StatusCode::IoError, "io_error", 503, kExitFailed},
    Row{StatusCode::Unavailable, "unavailable", 503, kExitFailed},
    Row{StatusCode::Corruption, "corruption", 500, kExitCorruption},
    Row{StatusCode::Locked, "locked", 503, kExitFailed},
    Row{StatusCode::Unsupported, "unsupported", 501, kExitFailed},
    Row{StatusCode::Cancelled, "cancelled", 503, kExitFailed},
};

const Row& row_of(StatusCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return row_of(StatusCode::IoError);
}

}  // namespace

std::string_view error_code_name(StatusCode code) {
  return row_of(code).name;
}
int http_status_of(StatusCode code) {
  return row_of(code).http;
}
int exit_code_of(StatusCode code) {
  return row_of(code).exit;
}

StatusCode status_code_of(std::string_view error_code_name) {
  for (const Row& row : kRows) {
    if (row.name == error_code_name) return row.code;
  }
  return StatusCode::IoError;
}

std::string error_json(const Status& status, std::uint64_t line) {
  nlohmann::json error = {{"code", error_code_name(status.code())}, {"message", status.message()}};
  if (line != 0) error["line"] = line;
  return nlohmann::json{{"error", error}}.dump(-1, ' ', false,
                                               nlohmann::json::error_handler_t::replace);
}

std::string_view version() {
  return EDGECASE_VERSION;
}

}  // namespace edgecase::wire
