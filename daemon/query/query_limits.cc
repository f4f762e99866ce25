#include "query/query_limits.h"

#include <string>

namespace edgecase::query {

Status check_limit(const QueryLimit& limit, std::uint64_t count, std::uint64_t most) {
  if (count <= most) return ok();
  std::string message(limit.influx_name);
  message += " limit exceeded: (" + std::to_string(count) + "/" + std::to_string(most) + "); ";
  message += limit.setting;
  return limit_reached(message + " is " + std::to_string(most));
}

std::uint64_t windows_between(std::int64_t first_ns, std::int64_t last_ns, std::int64_t every_ns) {
  const std::uint64_t span =
      static_cast<std::uint64_t>(last_ns) - static_cast<std::uint64_t>(first_ns);
  const std::uint64_t more = span / static_cast<std::uint64_t>(every_ns);
  return more == UINT64_MAX ? more : more + 1;
}

}  // namespace edgecase::query
