// Tiers of retention in the engine (retention/TIERS.md): a namespace for each namespace of readings
// and each length of windows, named by the number of the one and the other, since names are given
// again and numbers are not. A window is up to kTierColumns readings at the time it
// begins, each of a series of its own beside the series of the same device that it is of, so that
// whatever finds, hides, erases or expires readings does so with windows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"

namespace edgecase::catalog {

// What a window keeps of its readings. Numbers is there only where it is not what Count is: some
// were text or bytes.
enum class TierColumn : std::uint8_t { Count, Min, Max, Sum, First, Last, Numbers };
inline constexpr std::uint32_t kTierColumns = 7;
inline constexpr std::uint32_t kTierColumnBits = 3;
// A series with a larger number has no room for columns beside it; it stays raw.
inline constexpr std::uint32_t kTierSensorMax = UINT32_MAX >> kTierColumnBits;

struct TierSpace {
  NamespaceId id = 0;
  std::int64_t every_ns = 0;
};

inline constexpr std::string_view kTierPrefix = "_tier.";

// "_tier.12.60": of the namespace with number 12, windows of 60 s.
std::string tier_space_name(NamespaceId readings, std::int64_t every_ns);
// The tiers that there are of a namespace of readings, the finest first.
std::vector<TierSpace> tier_spaces_of(const Engine& engine, NamespaceId readings);
// Makes it if there is none. LimitReached: the engine has no room for more namespaces.
Result<TierSpace> ensure_tier_space(Engine& engine, NamespaceId readings, std::int64_t every_ns);
// Drops those of one namespace of readings, before that goes.
Status drop_tier_spaces(Engine& engine, NamespaceId readings);

// The series of a column; `series` has a sensor of kTierSensorMax at most.
inline SeriesId tier_series(NamespaceId tier, const SeriesId& series, TierColumn column) {
  return {tier, series.device,
          series.sensor << kTierColumnBits | static_cast<std::uint32_t>(column)};
}
// All windows that a tier has of a series, with a sensor as above.
KeySpan windows_span(const TierSpace& tier, const SeriesId& series);

// What tiers hold of a series, or of several.
struct WindowAmount {
  std::uint64_t windows = 0, bytes = 0;

  WindowAmount& operator+=(const WindowAmount& more) {
    windows += more.windows;
    bytes += more.bytes;
    return *this;
  }
};
Result<WindowAmount> windows_of(Engine& engine, const TierSpace& tier, const SeriesId& series);

}  // namespace edgecase::catalog
