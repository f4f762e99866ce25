// Amounts stored, of several series together. Inside daemon/report only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "query/listings.h"

namespace edgecase::report {

struct Amounts {
  std::uint64_t devices = 0, series = 0, readings = 0, bytes = 0;
  std::optional<std::int64_t> oldest_ns, newest_ns;

  void add(const query::SeriesInfo& info) {
    ++series;
    readings += info.count;
    bytes += info.stored_bytes;
    if (info.first_ns) oldest_ns = std::min(oldest_ns.value_or(*info.first_ns), *info.first_ns);
    if (info.last_ns) newest_ns = std::max(newest_ns.value_or(*info.last_ns), *info.last_ns);
  }
};

}  // namespace edgecase::report
