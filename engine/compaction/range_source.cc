#include "compaction/range_source.h"

#include <algorithm>

#include "compaction/garbage_source.h"
#include "compaction/picker.h"

namespace edgecase::engine {
namespace {

// From so many bytes of garbage a useful byte on: the longer a range waits, the more of it is dead
// when it is written again. The first where a good part of the drive is free.
constexpr double kRangeGarbageRoomy = 0.3;
constexpr double kRangeGarbage = 0.2;
// Until it is merged what lives in it is there twice.
constexpr std::uint64_t kLargestRangePart = 16;
constexpr std::uint64_t kRangeBytesMin = 1u << 20;

}  // namespace

Result<Offer> RangeSource::next(const LaneView& view) {
  if (view.idle) return Offer::none();
  const Version& version = *view.mergeable;
  const double garbage = garbage_.share(version);
  if (garbage < (context_.host.is_roomy() ? kRangeGarbageRoomy : kRangeGarbage))
    return Offer::none();
  const auto dead = garbage_.dead_tables(version, cleaned_share_min(garbage - garbage_.grace()));
  if (dead.empty() || !is_merged_by_range(version.trees.at(dead.front().id), *dead.front().run))
    return Offer::none();
  auto plan = pick_range(version, dead.front());
  if (!plan) return Offer::none();
  garbage_.note_idle_share(0);
  return Offer::merge(*std::move(plan));
}

std::optional<MergePlan> RangeSource::pick_range(const Version& version, const DeadTable& deadest) {
  // What is in level 0 does not take part.
  std::uint64_t waiting = 0;
  for (const TablePointer& table : version.level0) waiting += table->item_bytes();
  if (waiting >= version.value_bytes() / kSlicePart) {
    auto sinks = pick_level0(version, 1);
    if (sinks && !is_in_pieces(version, *sinks)) return sinks;
  }
  std::size_t runs = 0;
  const Run* largest = nullptr;
  for (const Run& run : version.trees.at(deadest.id)) {
    if (run.kind != TableKind::Groups || run.life != deadest.run->life) continue;
    ++runs;
    if (largest == nullptr || run.item_bytes > largest->item_bytes) largest = &run;
  }
  windows_.end_slices();
  std::erase_if(range_ends_,
                [&](const auto& end) { return !version.trees.contains(end.first.first); });
  const std::uint64_t bytes =
      std::min(slice_bytes(context_.options, version, runs, kSlicePart),
               std::max(version.value_bytes() / kLargestRangePart, kRangeBytesMin));
  return plan_range(version, *largest, range_ends_[{deadest.id, deadest.run->life}], bytes);
}

void RangeSource::committed(const FinishedMerge& merge, bool own) {
  if (!own || merge.is_from_level0()) return;
  // Nothing of what was merged is dead.
  garbage_.note_clean(merge.merged);
  const TableMetadata& table = *merge.plan.groups.front().front();
  range_ends_[{table.namespace_id, merge.plan.life}] =
      merge.merged.empty() ? merge.plan.upper : merge.merged.back().largest;
}

}  // namespace edgecase::engine
