#include "compaction/garbage_source.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "compaction/picker.h"

namespace edgecase::engine {
namespace {

// The more garbage there is, the less of a table need be dead to make cleaning it worth it: from
// `kGarbageMin` (window_source.h) bytes a useful one on, and down to the lowest share at
// `kGarbageMax`. The same of value files, from EvacuationLimits on. Where all of a store was
// written at once all of it dies alike: then nothing is worth it until the whole is as dead.
constexpr double kGarbageMax = 0.25;
constexpr double kDeadShareMax = 0.45;
constexpr double kDeadShareMin = 0.2;
constexpr double kQuietDeadShare = 0.1;
// Tables of one cleaning are about as dead.
constexpr double kDeadShareSpread = 0.1;
// One cleaning takes this part of the store: until it is done, what lives is there twice.
constexpr std::uint64_t kCleanedPart = 32;
constexpr std::uint64_t kCleanedBytesMin = 4u << 20;

}  // namespace

double cleaned_share_min(double garbage) {
  if (garbage < kGarbageMin) return std::numeric_limits<double>::infinity();
  const double pressure =
      std::clamp((garbage - kGarbageMin) / (kGarbageMax - kGarbageMin), 0.0, 1.0);
  return kDeadShareMax - pressure * (kDeadShareMax - kDeadShareMin);
}

Result<Offer> GarbageSource::next(const LaneView& view) {
  // What a relocation is about to write again is not worth moving before. Under load it takes
  // longer, and what is dead is freed in between.
  if (view.idle && windows_.is_slicing()) return Offer::none();
  const Version& version = *view.mergeable;
  if (garbage_.has_samples()) {
    EC_TRY(garbage_.take_sample(version, view.idle));
    return Offer::step();
  }
  auto plan = pick_evacuation(version, evacuation_limits(version));
  if (!plan) plan = pick_cleaning(view);
  garbage_.note_idle_share(plan ? 0 : garbage_.share(version));
  return plan ? Offer::merge(*std::move(plan)) : Offer::none();
}

EvacuationLimits GarbageSource::evacuation_limits(const Version& version) const {
  // Shares of all bytes, not of the useful ones.
  constexpr double kUseful = 1 / (1 - EvacuationLimits{}.garbage_share);
  const double grace = garbage_.grace();
  EvacuationLimits limits;
  limits.garbage_share = 1 - 1 / (kUseful + grace);
  const double garbage = garbage_share(version, 0) - grace;
  const double pressure =
      std::clamp((garbage - (kUseful - 1)) / (kGarbageMax - (kUseful - 1)), 0.0, 1.0);
  limits.file_share -= pressure * (limits.file_share - kDeadShareMin);
  return limits;
}

std::optional<MergePlan> GarbageSource::pick_cleaning(const LaneView& view) {
  const Version& version = *view.mergeable;
  const double share_min =
      settles_ ? kQuietDeadShare : cleaned_share_min(garbage_.share(version) - garbage_.grace());
  const std::vector<DeadTable> candidates = garbage_.dead_tables(version, share_min);
  if (candidates.empty()) {
    settles_ = false;
    return std::nullopt;
  }
  // The deadest table, and others of its run; or, where that is small, of small runs.
  const DeadTable& deadest = candidates.front();
  if (!view.idle && is_merged_by_range(version.trees.at(deadest.id), *deadest.run))
    return std::nullopt;
  const std::uint64_t bytes_max =
      std::clamp(item_bytes_of_groups(version) / kCleanedPart, kCleanedBytesMin, kMovedBytesMax);
  const bool small = deadest.run->item_bytes <= bytes_max;
  std::set<FileNumber> chosen;
  std::uint64_t bytes = 0;
  for (const DeadTable& candidate : candidates) {
    const bool fits =
        small ? candidate.run->item_bytes <= bytes_max && candidate.run->life == deadest.run->life
              : candidate.run == deadest.run;
    if (!fits || candidate.id != deadest.id ||
        candidate.dead_share < deadest.dead_share - kDeadShareSpread)
      continue;
    if (!chosen.empty() && bytes + candidate.table->item_bytes() > bytes_max) continue;
    bytes += candidate.table->item_bytes();
    chosen.insert(candidate.table->number);
  }
  return plan_cleaning(version, deadest.id, chosen);
}

void GarbageSource::committed(const FinishedMerge& merge, bool own) {
  if (own && merge.plan.mode == MergeMode::Clean) garbage_.note_clean(merge.merged);
  if (merge.is_from_level0()) settles_ = false;
}

void GarbageSource::settle(const Version& version) {
  garbage_.follow(version);
  garbage_.sample_all(version);
  settles_ = true;
}

}  // namespace edgecase::engine
