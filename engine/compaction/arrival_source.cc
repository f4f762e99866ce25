#include "compaction/arrival_source.h"

#include <utility>

#include "compaction/picker.h"

namespace edgecase::engine {
namespace {

std::optional<MergePlan> pick_sink(const Version& version) {
  auto plan = pick_level0(version, kLevel0TablesMax);
  if (!plan || !is_in_pieces(version, *plan)) return plan;
  // A small file of each table and namespace would come out.
  if (plan->groups.size() < kLevel0PiecesMin && plan->singles.empty()) return std::nullopt;
  plan->mode = MergeMode::Relocate;
  return plan;
}

}  // namespace

Result<Offer> ArrivalSource::next(const LaneView& view) {
  const Version& version = *view.mergeable;
  // Before the newest tables leave level 0.
  EC_ASSIGN_OR_RETURN(const bool looked, garbage_.look_at_growth(version));
  if (looked) return Offer::step();
  if (auto plan = pick_sink(version)) return Offer::merge(*std::move(plan));
  // A store that grows may hold superseded values a while: there, only runs that are alike.
  auto plan = garbage_.grace() > 0 ? pick_singles(version, kWindowMinRecords, kSimilarSize)
                                   : pick_singles(version, kSingleRunsMax);
  return plan ? Offer::merge(*std::move(plan)) : Offer::none();
}

}  // namespace edgecase::engine
