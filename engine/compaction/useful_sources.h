// The sources of work that is useful and not due, but for windows (window_source.h): what flushes
// bring is sorted in, what is dead goes. compactor.h has their order. Owned by the lane.
#pragma once

#include <map>
#include <utility>

#include "compaction/garbage_estimate.h"
#include "compaction/window_source.h"

namespace edgecase::engine {

// ArrivalSource sorts in what flushes bring: it merges level 0 into the trees of its namespaces. It
// also merges the records of single values, so that what they supersede is known. Owned by the
// lane.
class ArrivalSource final : public WorkSource {
 public:
  explicit ArrivalSource(GarbageEstimate& garbage) : garbage_(garbage) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;

 private:
  GarbageEstimate& garbage_;
};

// GarbageSource frees bytes that nobody can read any more: it empties the emptiest value files,
// samples tables and cleans the deadest. It does first what frees a byte for the least writing; the
// more garbage there is, the more may be written for it. Owned by the lane.
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

// RangeSource frees what updates of small entries supersede, range by range: it merges all runs of
// a tree between two keys, then between the next two, in a circle. Cleaning would ask for each
// entry whether something newer has its key; where entries are small, that takes longer than all
// else. Owned by the lane.
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

// SettlingSource does what is worth it only once writes rest. So a store that nobody writes to
// holds little that is dead, and then comes to rest itself. Owned by the lane.
class SettlingSource final : public WorkSource {
 public:
  explicit SettlingSource(GarbageSource& garbage) : garbage_(garbage) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;

 private:
  Offer settle(const Version& version, FileNumber newest);

  GarbageSource& garbage_;
  FileNumber settled_up_to_ = 0;  // the newest table when all was settled
};

}  // namespace edgecase::engine
