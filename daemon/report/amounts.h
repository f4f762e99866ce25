// Amounts stored, of several series together. Inside daemon/report only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "catalog/tier_spaces.h"
#include "query/listings.h"
#include "retention/retention_service.h"
#include "wire/json_values.h"

namespace edgecase::report {

struct Amounts {
  std::uint64_t devices = 0, series = 0, readings = 0, bytes = 0;
  catalog::WindowAmount windows;  // of tiers, beside the readings
  std::optional<std::int64_t> oldest_ns, newest_ns;

  void add(const query::SeriesInfo& info, const catalog::WindowAmount& of_tiers) {
    ++series;
    windows += of_tiers;
    readings += info.count;
    bytes += info.stored_bytes;
    if (info.first_ns) oldest_ns = std::min(oldest_ns.value_or(*info.first_ns), *info.first_ns);
    if (info.last_ns) newest_ns = std::max(newest_ns.value_or(*info.last_ns), *info.last_ns);
  }
};

// In all tiers together. Without a mark there is nothing to look for.
inline Result<catalog::WindowAmount> windows_of(Engine& engine,
                                                const retention::RetentionService& retention,
                                                const catalog::SeriesId& series) {
  catalog::WindowAmount amount;
  if (retention.marks().find(series).every_ns.empty()) return amount;
  for (const catalog::TierSpace& tier : catalog::tier_spaces_of(engine, series.namespace_id)) {
    EC_ASSIGN_OR_RETURN(const catalog::WindowAmount more,
                        catalog::windows_of(engine, tier, series));
    amount += more;
  }
  return amount;
}

inline void append_windows(const catalog::WindowAmount& amount, wire::Json& json) {
  json["windows"] = amount.windows;
  json["window_bytes"] = amount.bytes;
}

}  // namespace edgecase::report
