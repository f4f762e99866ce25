// RangeSource frees what updates of small entries supersede, range by range: it merges all runs of
// a tree between two keys, then between the next two, in a circle. Cleaning would ask for each
// entry whether something newer has its key; where entries are small, that takes longer than all
// else. Owned by the lane.
#pragma once

#include <map>
#include <utility>

#include "compaction/garbage_estimate.h"
#include "compaction/window_source.h"

namespace edgecase::engine {

class RangeSource final : public WorkSource {
 public:
  RangeSource(const CompactorContext& context, GarbageEstimate& garbage, WindowSource& windows)
      : context_(context), garbage_(garbage), windows_(windows) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;
  void committed(const FinishedMerge& merge, bool own) override;

 private:
  std::optional<MergePlan> pick_range(const Version& version, const DeadTable& deadest);

  const CompactorContext& context_;
  GarbageEstimate& garbage_;
  WindowSource& windows_;
  // Where the last merge of a range ended, in its namespace and life class.
  std::map<std::pair<NamespaceId, LifeClass>, Bytes> range_ends_;
};

}  // namespace edgecase::engine
