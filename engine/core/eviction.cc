#include "core/eviction.h"

#include <algorithm>
#include <vector>

namespace edgecase::engine {
namespace {

// What goes may be three quarters of what was asked for, or twice as much, where files go whole
// with that: it costs nothing, and moving the rest of one does.
constexpr double kLeastShare = 0.75;
constexpr double kMostShare = 2;

// A value file's entries, as if they lay evenly.
struct Spread {
  std::int64_t first_ns;
  std::int64_t last_ns;
  std::uint64_t bytes;

  std::uint64_t before(std::int64_t time_ns) const {
    if (time_ns <= first_ns) return 0;
    if (last_ns < time_ns) return bytes;
    const double span_ns = static_cast<double>(last_ns) - static_cast<double>(first_ns);
    const double gone_ns = static_cast<double>(time_ns) - static_cast<double>(first_ns);
    return span_ns <= 0 ? 0
                        : static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                                     std::min(gone_ns / span_ns, 1.0));
  }
};

std::uint64_t bytes_older_than(const std::vector<Spread>& files, std::int64_t time_ns) {
  std::uint64_t bytes = 0;
  for (const Spread& each : files) bytes += each.before(time_ns);
  return bytes;
}

// The least time before which `wanted_bytes` lie; `limit_ns` where there are fewer.
std::int64_t time_for(const std::vector<Spread>& files, std::uint64_t wanted_bytes,
                      std::int64_t limit_ns) {
  std::int64_t low_ns = kEverNs, high_ns = limit_ns;
  while (low_ns < high_ns) {
    // Half way, without going out of range.
    const std::int64_t middle_ns = (low_ns >> 1) + (high_ns >> 1) + (low_ns & high_ns & 1);
    if (bytes_older_than(files, middle_ns) >= wanted_bytes) {
      high_ns = middle_ns;
    } else {
      low_ns = middle_ns + 1;
    }
  }
  return high_ns;
}

// The time itself, or one close to it at which a file ends.
std::int64_t at_end_of_file(const std::vector<Spread>& files, const EvictionRequest& request,
                            std::int64_t time_ns) {
  std::int64_t earlier_ns = kEverNs, later_ns = request.limit_ns;
  for (const Spread& each : files) {
    if (each.last_ns >= request.limit_ns) continue;
    if (each.last_ns < time_ns) {
      earlier_ns = std::max(earlier_ns, each.last_ns + 1);
    } else {
      later_ns = std::min(later_ns, each.last_ns + 1);
    }
  }
  const auto wanted = static_cast<double>(request.value_bytes);
  const auto goes_before = [&](std::int64_t at_ns) {
    return static_cast<double>(bytes_older_than(files, at_ns));
  };
  if (earlier_ns != kEverNs && goes_before(earlier_ns) >= wanted * kLeastShare) return earlier_ns;
  if (later_ns < request.limit_ns && goes_before(later_ns) <= wanted * kMostShare) return later_ns;
  return time_ns;
}

}  // namespace

Eviction plan_eviction(const EvictionRequest& request, const Version& version,
                       const RetentionRules* rules) {
  std::vector<Spread> files;
  for (const auto& [number, file] : version.value_files) {
    const auto live = version.live_bytes.find(number);
    if (live == version.live_bytes.end() || file.time_max_ns == kNeverNs ||
        std::find(request.namespaces.begin(), request.namespaces.end(), file.namespace_id) ==
            request.namespaces.end())
      continue;
    // What went before takes no part.
    const std::uint64_t below = rules == nullptr ? 0 : rules->given_up_below(file.namespace_id);
    const Spread whole{file.time_min_ns, file.time_max_ns, live->second};
    const std::uint64_t gone = whole.before(time_of_ordinal(below));
    if (gone == whole.bytes) continue;
    files.push_back(
        {std::max(file.time_min_ns, time_of_ordinal(below)), file.time_max_ns, whole.bytes - gone});
  }
  if (request.value_bytes == 0) return {};
  Eviction eviction;
  eviction.before_ns = time_for(files, request.value_bytes, request.limit_ns);
  eviction.before_ns = at_end_of_file(files, request, eviction.before_ns);
  eviction.value_bytes = bytes_older_than(files, eviction.before_ns);
  return eviction;
}

}  // namespace edgecase::engine
