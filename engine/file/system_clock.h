// Tells whether a time server has set the clock, by the file that systemd-timesyncd touches after
// each answer, at least every 2,048 s. /run is empty after a start.
#pragma once

#include <cstdint>

namespace edgecase::engine {

inline constexpr const char* kTimesyncdMark = "/run/systemd/timesync/synchronized";

// The mark was made by the clock as it is now, within the last hour: a clock that was set by more
// since does not fit it.
bool was_synchronised(const char* mark_path, std::int64_t wall_ns);

}  // namespace edgecase::engine
