// GarbageSource frees bytes that nobody can read any more: it empties the emptiest value files,
// samples tables and cleans the deadest. It does first what frees a byte for the least writing; the
// more garbage there is, the more may be written for it. Owned by the lane.
#pragma once

#include "compaction/garbage_estimate.h"
#include "compaction/window_source.h"

namespace edgecase::engine {

class GarbageSource final : public WorkSource {
 public:
  GarbageSource(const CompactorContext& context, GarbageEstimate& garbage,
                const WindowSource& windows)
      : context_(context), garbage_(garbage), windows_(windows) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;
  void committed(const FinishedMerge& merge, bool own) override;
  void interrupted(const Status&) override { garbage_.drop_samples(); }

  // Writes rest: all tables are sampled once more, and little that is dead makes cleaning worth it.
  void settle(const Version& version);

 private:
  EvacuationLimits evacuation_limits(const Version& version) const;
  std::optional<MergePlan> pick_cleaning(const LaneView& view);

  const CompactorContext& context_;
  GarbageEstimate& garbage_;
  const WindowSource& windows_;
  bool settles_ = false;
};

// How much of a table must be dead to be cleaned, at so much garbage; infinity: no table is.
double cleaned_share_min(double garbage);

}  // namespace edgecase::engine
