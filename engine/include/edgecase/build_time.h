// The time at which this program was built: it is later now, whatever a clock says.
#pragma once

#include <cstdint>

namespace edgecase {

// Nanoseconds since 1970-01-01 UTC; of SOURCE_DATE_EPOCH where the build was given one.
std::int64_t build_time_ns();

}  // namespace edgecase
