// A value or the Status that says why there is none, and the two macros that pass failures on.
#pragma once

#include <cstdlib>
#include <optional>
#include <utility>

#include "edgecase/status.h"

namespace edgecase {

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
