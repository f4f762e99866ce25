// The answer of a target to a request, and the interface of what carries requests to it. No state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace edgecase::forward {

enum class Verdict : unsigned char {
  Taken,
  Refused,  // of these lines something is wrong, or they are too many: fewer may do
  Later,    // it asks for patience
  Away,     // it is not reached, or the connection broke off: what became of them is not known
  Denied,   // the token or the user may not
  Wrong,    // what answers is no target, or not this one
  Stopped,  // the daemon stops, or the target changes
  Stale,    // what was read has been erased since
};

struct Answer {
  Verdict verdict = Verdict::Taken;
  int status = 0;        // of HTTP; 0: none came
  std::string why = {};  // one line, with what to do; empty: taken
  std::optional<std::int64_t> retry_after_ns = {};
  std::uint64_t not_kept = 0;  // of those that were taken
  // The target knows another holder of this store's number: what goes there is kept apart.
  bool is_apart = false;
};

class Carrier {
 public:
  virtual ~Carrier() = default;
  // `count` lines, of one request.
  virtual Answer carry(const std::string& database, std::string_view lines, std::size_t count) = 0;
};

}  // namespace edgecase::forward
