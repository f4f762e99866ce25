// Times, durations and sizes as people write them (CONTRACT section 2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edgecase/result.h"

namespace edgecase::wire {

inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// "15m", "1h30m", "250us": one or more whole numbers with units ns us ms s m h d w, no sign.
// InvalidArgument for anything else, and for what int64 nanoseconds cannot hold.
Result<std::int64_t> parse_duration_ns(std::string_view text);
// "1h30m"; days are the largest unit; reads back equal. `duration_ns` is not negative.
std::string format_duration(std::int64_t duration_ns);

// The grammar of times, wherever one is taken. Absolute ones: RFC 3339 (any offset, 0-9 fraction
// digits, date alone = midnight UTC), "@seconds[.decimals]", whole nanoseconds (not what looks like
// a year, or like a distance without a unit). InvalidArgument says what is wrong and what would do.
Result<std::int64_t> parse_absolute_time_ns(std::string_view text);
// The same, and "now", "-15m" (before `now_ns`), "+15m".
Result<std::int64_t> parse_time_ns(std::string_view text, std::int64_t now_ns);
// RFC 3339 alone, from 1677-09-21T00:12:43.145224192Z to 2262-04-11T23:47:16.854775807Z. A leap
// second (23:59:60 UTC) is the second after it, as in POSIX time: refusing it would lose the
// reading.
Result<std::int64_t> parse_rfc3339_ns(std::string_view text);

// "64MiB", "1GB", "4096", "64 MiB": bytes. Units B kB MB GB TB KiB MiB GiB TiB.
Result<std::uint64_t> parse_size_bytes(std::string_view text);
std::string format_size(std::uint64_t bytes);  // "64 MiB", "1.5 GiB", for people

}  // namespace edgecase::wire
