// The format of times in a file that is not EdgeCase's own: --time-format of `import`.
//
// A count since 1970 in a unit (unix, unix_ms, unix_us, unix_ns), or a pattern of strptime(3)'s
// letters, of which these are known: %Y %y %m %d %j %H %I %p %M %S %f %b %B %z %s %T %F %D %R %%.
// %f is digits behind a decimal point, as many as there are; %b and %B are English. White space in
// the pattern is any, or none. Immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {
class TimeZone;
}

namespace edgecase::cli {

class TimeFormat {
 public:
  // InvalidArgument: neither a unit nor a pattern that says day and time.
  static Result<TimeFormat> parse(std::string_view text);

  // What a whole number counts, in nanoseconds; 0: this is a pattern.
  std::int64_t unit_ns() const { return unit_ns_; }

  // InvalidArgument: not so, no such day, or beyond what 64-bit nanoseconds hold. `zone`: whose
  // clock it is where the text names no offset; null: such a text is refused.
  Result<std::int64_t> read(std::string_view text, const wire::TimeZone* zone) const;

 private:
  std::int64_t unit_ns_ = 0;
  std::string pattern_;  // without %T, %F and the like
};

// The option that makes a count since 1970 right that was taken for nanoseconds: "unix" of a time
// that would be one between 2005 and 2096 if it were seconds, "unix_ms", "unix_us"; else empty.
std::string_view unit_meant(std::int64_t time_ns);

}  // namespace edgecase::cli
