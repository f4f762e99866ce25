// The outcome of an operation: a code for programs and a message for people.
// Cheap to move; an Ok status holds no memory. Thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace edgecase {

enum class StatusCode : unsigned char {
  Ok,
  NotFound,         // no such key, series, namespace, file; no failure
  InvalidArgument,  // the caller's input is wrong
  AlreadyExists,
  NotAllowed,   // the caller may not do this
  Busy,         // a limit is reached; try again later
  OutOfSpace,   // the drive is full
  IoError,      // the drive failed an operation
  Unavailable,  // a drive or peer is missing
  Corruption,   // bytes on a drive are not what was written
  Locked,       // another process owns the store
  Unsupported,  // a newer format, an unknown feature
  Cancelled,    // stopped by the user or by shutdown
};

// A short lower-case name: "not found", "corruption".
constexpr std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::Ok: return "ok";
    case StatusCode::NotFound: return "not found";
    case StatusCode::InvalidArgument: return "invalid argument";
    case StatusCode::AlreadyExists: return "already exists";
    case StatusCode::NotAllowed: return "not allowed";
    case StatusCode::Busy: return "busy";
    case StatusCode::OutOfSpace: return "out of space";
    case StatusCode::IoError: return "i/o error";
    case StatusCode::Unavailable: return "unavailable";
    case StatusCode::Corruption: return "corruption";
    case StatusCode::Locked: return "locked";
    case StatusCode::Unsupported: return "unsupported";
    case StatusCode::Cancelled: return "cancelled";
  }
  return "unknown";
}

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::Ok; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "corruption: values/12.val at byte 4096: wrong checksum"
  std::string to_string() const {
    std::string text(status_code_name(code_));
    if (!message_.empty()) text += ": " + message_;
    return text;
  }

 private:
  StatusCode code_ = StatusCode::Ok;
  std::string message_;
};

inline Status ok() {
  return {};
}
inline Status not_found(std::string m) {
  return {StatusCode::NotFound, std::move(m)};
}
inline Status invalid_argument(std::string m) {
  return {StatusCode::InvalidArgument, std::move(m)};
}
inline Status already_exists(std::string m) {
  return {StatusCode::AlreadyExists, std::move(m)};
}
inline Status not_allowed(std::string m) {
  return {StatusCode::NotAllowed, std::move(m)};
}
inline Status busy(std::string m) {
  return {StatusCode::Busy, std::move(m)};
}
inline Status out_of_space(std::string m) {
  return {StatusCode::OutOfSpace, std::move(m)};
}
inline Status io_error(std::string m) {
  return {StatusCode::IoError, std::move(m)};
}
inline Status unavailable(std::string m) {
  return {StatusCode::Unavailable, std::move(m)};
}
inline Status corruption(std::string m) {
  return {StatusCode::Corruption, std::move(m)};
}
inline Status locked(std::string m) {
  return {StatusCode::Locked, std::move(m)};
}
inline Status unsupported(std::string m) {
  return {StatusCode::Unsupported, std::move(m)};
}
inline Status cancelled(std::string m) {
  return {StatusCode::Cancelled, std::move(m)};
}

}  // namespace edgecase
