#include "influxql/points.h"

#include <string>

#include "query/query_limits.h"

namespace edgecase::influxql {

Status Spending::add_window() {
  if (++windows_ <= windows_max_) return ok();
  return query::check_limit(query::kWindowsLimit, windows_, windows_max_);
}

Status Spending::expect_windows(std::uint64_t count) const {
  if (windows_ <= windows_max_ && count <= windows_max_ - windows_) return ok();
  const std::uint64_t all = count > UINT64_MAX - windows_ ? UINT64_MAX : windows_ + count;
  return query::check_limit(query::kWindowsLimit, all, windows_max_);
}

Status Spending::hold(std::uint64_t bytes) {
  if (bytes > held_bytes_max_ - held_bytes_)
    return limit_reached("a statement may hold " + std::to_string(held_bytes_max_) +
                         " bytes of values at once: ask for fewer series or a shorter time");
  held_bytes_ += bytes;
  return ok();
}

}  // namespace edgecase::influxql
