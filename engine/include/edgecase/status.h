// The outcome of an operation. Status: facts for programs (code, drive, errno, file) and a message
// for people. Result: a value, or the Status that says why there is none; two macros pass failures
// on. EC_CHECK is for what cannot be, whatever comes from outside.
//
// Whatever is decided of an error is decided by its facts; nobody looks into the message. Cheap to
// move; an Ok status holds no memory, and facts take none beside the message. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace edgecase {

enum class StatusCode : unsigned char {
  Ok,
  NotFound,         // no such key, series, namespace, file; no failure
  InvalidArgument,  // the caller's input is wrong
  AlreadyExists,
  NotAllowed,    // the caller may not do this
  Busy,          // cannot be taken now; try again later
  LimitReached,  // a limit is reached for good: waiting does not mend it, somebody has to
  OutOfSpace,    // the drive is full
  IoError,       // the drive failed an operation
  Unavailable,   // a drive or peer is missing
  Corruption,    // bytes on a drive are not what was written
  Locked,        // another process owns the store
  Unsupported,   // a newer format, an unknown feature
  Cancelled,     // stopped by the user or by shutdown
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
    case StatusCode::LimitReached: return "limit reached";
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

// Which of the store's two drives an error is of. None: of neither, or nobody said so.
enum class Drive : unsigned char { None, Metadata, Values };

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  // An error with a file or directory: the message is `before`, its path, `after`. `error` is an
  // errno, or 0.
  static Status of_file(StatusCode code, std::string_view before, std::string_view path,
                        std::string_view after, int error = 0) {
    std::string message;
    message.reserve(before.size() + path.size() + after.size());
    message.append(before).append(path).append(after);
    Status status(code, std::move(message));
    status.errno_ = static_cast<std::uint16_t>(error);
    status.place_file(before.size(), path.size());
    return status;
  }

  bool ok() const { return code_ == StatusCode::Ok; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  Drive drive() const { return drive_; }
  int system_error() const { return errno_; }  // an errno; 0: no call of the system failed
  // The path of the file or directory it is of; a view of the message. Empty: of none.
  std::string_view file() const {
    return std::string_view(message_).substr(file_begin_, file_size_);
  }

  // "corruption: values/12.val at byte 4096: wrong checksum"
  std::string to_string() const {
    std::string text(status_code_name(code_));
    if (!message_.empty()) text += ": " + message_;
    return text;
  }

  // Said by whoever knows which drive it worked on. What was said first, nearer to the drive,
  // stays. Nothing becomes of an Ok one.
  Status on(Drive drive) && {
    if (!ok() && drive_ == Drive::None) drive_ = drive;
    return std::move(*this);
  }
  Status on(Drive drive) const& { return Status(*this).on(drive); }

  // The same facts with more words around the message, which say what was being done. Nothing
  // becomes of an Ok one.
  Status with_context(std::string_view before, std::string_view after = {}) && {
    if (ok()) return std::move(*this);
    message_.insert(0, before).append(after);
    place_file(before.size() + file_begin_, file_size_);
    return std::move(*this);
  }
  Status with_context(std::string_view before, std::string_view after = {}) const& {
    return Status(*this).with_context(before, after);
  }

  // The same facts, and `path: ` in front of the message. It is of that file where it is of none
  // yet. Nothing becomes of an Ok one.
  Status in_file(std::string_view path) const {
    Status named = with_context(std::string(path) + ": ");
    if (!ok() && file_size_ == 0) named.place_file(0, path.size());
    return named;
  }

  // The same facts and words under another code, where what failed means something else to the
  // caller. Neither may be Ok.
  Status as(StatusCode code) && {
    code_ = code;
    return std::move(*this);
  }
  Status as(StatusCode code) const& { return Status(*this).as(code); }

 private:
  // A path that lies too far behind is not told rather than told wrongly.
  void place_file(std::size_t begin, std::size_t size) {
    constexpr std::size_t kMax = std::numeric_limits<std::uint16_t>::max();
    const bool fits = begin <= kMax && size <= kMax;
    file_begin_ = static_cast<std::uint16_t>(fits ? begin : 0);
    file_size_ = static_cast<std::uint16_t>(fits ? size : 0);
  }

  StatusCode code_ = StatusCode::Ok;
  Drive drive_ = Drive::None;
  std::uint16_t errno_ = 0;
  std::uint16_t file_begin_ = 0;  // in the message
  std::uint16_t file_size_ = 0;
  std::string message_;
};
static_assert(sizeof(Status) == sizeof(std::uint64_t) + sizeof(std::string),
              "facts take no room: Status is answered by everything");

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
inline Status limit_reached(std::string m) {
  return {StatusCode::LimitReached, std::move(m)};
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
// Damage in one file: `after` follows its path in the message.
inline Status corruption_in(std::string_view path, std::string_view after) {
  return Status::of_file(StatusCode::Corruption, "", path, after);
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

template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return not_found("...");` both read well.
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) std::abort();  // an Ok result must carry a value
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // As Status::on(): of a failure, on which drive it was.
  Result on(Drive drive) && {
    status_ = std::move(status_).on(drive);
    return std::move(*this);
  }

  // Only when ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace edgecase

#define EC_CONCATENATE_INNER(a, b) a##b
#define EC_CONCATENATE(a, b) EC_CONCATENATE_INNER(a, b)

// Returns from the enclosing function when `expression` (a Status) is not Ok.
#define EC_TRY(expression)                                                              \
  do {                                                                                  \
    if (::edgecase::Status ec_status = (expression); !ec_status.ok()) return ec_status; \
  } while (false)

// Declares or assigns `target` from a Result, or returns its Status.
#define EC_ASSIGN_OR_RETURN(target, expression) \
  EC_ASSIGN_OR_RETURN_INNER(EC_CONCATENATE(ec_result_, __LINE__), target, expression)
#define EC_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return result.status();                   \
  target = std::move(result).value()

// EC_CHECK stops the process when an invariant of ours is broken, in every build. Never for input,
// never for what a drive returned: those have a Status.

#define EC_CHECK(condition)                                             \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::edgecase::engine::check_failed(#condition, __FILE__, __LINE__); \
    }                                                                   \
  } while (false)

namespace edgecase::engine {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace edgecase::engine
