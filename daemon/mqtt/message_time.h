// The time a message carries, in the ways devices write it. Exact: decimals are read as decimals,
// never through float64; digits below a nanosecond are cut.
#pragma once

#include <cstdint>
#include <string_view>

#include "edgecase/result.h"
#include "wire/time_zone.h"

namespace edgecase::mqtt {

enum class TimeFormat : std::uint8_t { Auto, Rfc3339, Unix, UnixMs, UnixUs, UnixNs };

// "auto", "rfc3339", "unix", "unix_ms", "unix_us", "unix_ns".
Result<TimeFormat> parse_time_format(std::string_view name);

// Auto takes RFC 3339, or a number whose size tells its unit: below 10^11 seconds (year 5138),
// below 10^14 milliseconds, below 10^17 microseconds, else nanoseconds. RFC 3339 is taken with `T`
// or a space, with `Z`, `+01:00`, `+0100` or `+01`; a time without an offset is an error.
// InvalidArgument also for what int64 nanoseconds cannot hold.
// With a zone, a time without an offset is what clocks there show.
Result<std::int64_t> parse_message_time_ns(std::string_view text, TimeFormat format,
                                           const wire::TimeZone* zone = nullptr);

// "2026-11-20T14:00:00" without an offset: local time of a place we do not know.
bool is_time_without_offset(std::string_view text);

// Whether the time at that JSON pointer says when a device was last heard, rather than when its
// values were measured: zigbee2mqtt's `last_seen`.
bool says_last_heard(std::string_view pointer);

}  // namespace edgecase::mqtt
