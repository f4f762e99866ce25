// TierMaker on a full drive: storage.on-full = "thin-oldest".
#include <algorithm>
#include <utility>

#include "query/cursors.h"
#include "tiers/tier_maker.h"

namespace edgecase::tiers {

// When the first window of all is whole: before that time there is something to make room with.
// None: there is nothing.
std::optional<std::int64_t> TierMaker::first_due_ns(std::int64_t limit_ns, std::string& why) {
  std::optional<std::int64_t> first_due_ns;
  why = "no rule of retention has tiers that readings could become windows of";
  each_series([&](const catalog::SeriesEntry& series) {
    const wire::Keeping keeping = retention_.keeping(series);
    if (keeping.tiers.empty() || series.id.sensor > catalog::kTierSensorMax) return;
    if (!first_due_ns) why = "all readings whose rule has tiers are windows, but for the newest";
    const auto first = first_ns(series, limit_ns);
    if (!first.ok()) {
      why = first.status().message();
      return;
    }
    const std::int64_t every_ns = keeping.tiers.back().every_ns;
    std::int64_t end_ns = 0;
    if (!*first ||
        __builtin_add_overflow(query::window_start(**first, every_ns), every_ns, &end_ns))
      return;
    if (end_ns <= limit_ns) first_due_ns = std::min(first_due_ns.value_or(end_ns), end_ns);
  });
  return first_due_ns;
}

// Readings of rules without tiers are as old, and stay: then later ones have to go.
retention::Thinned TierMaker::thin_oldest(std::uint64_t value_bytes, std::int64_t limit_ns) {
  const MutexLock passing(pass_mutex_);
  retention::Thinned thinned;
  const auto first_due_ns = this->first_due_ns(limit_ns, thinned.left);
  if (!first_due_ns) return thinned;
  EvictionRequest request;
  request.limit_ns = limit_ns;
  for (const std::string& name : catalog_.namespaces()) {
    const auto info = engine_.find_namespace(name);
    if (info.ok() && !name.starts_with('_')) request.namespaces.push_back(info->id);
  }
  const TierStatus before = status();
  Status problem;
  std::uint64_t going_bytes = 0;
  for (request.value_bytes = value_bytes;; request.value_bytes *= 2) {
    const Eviction plan = engine_.plan_eviction(request);
    const bool is_all = plan.value_bytes < request.value_bytes / 2 || plan.before_ns >= limit_ns;
    thinned.before_ns = is_all ? limit_ns : plan.before_ns;
    if (thinned.before_ns >= *first_due_ns)
      problem = do_due({.thin_ns = thinned.before_ns}, going_bytes);
    const bool is_enough = status().readings > before.readings && going_bytes >= value_bytes / 2;
    if (is_all || is_stopping() || is_enough) break;
  }
  retention_.tell_marks();
  const TierStatus after = status();
  thinned.readings = after.readings - before.readings;
  thinned.windows = after.windows - before.windows;
  thinned.value_bytes = going_bytes;
  if (!problem.ok()) thinned.left = problem.message();
  return thinned;
}

bool TierMaker::is_going(bool is_urgent) {
  const MutexLock passing(pass_mutex_);
  static_cast<void>(erase_hidden(!is_urgent).ok());  // it is tried again
  return !retention_.marks().waiting(1).empty() || engine_.stats().erasure.pending_ranges > 0;
}

}  // namespace edgecase::tiers
