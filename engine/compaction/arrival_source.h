// ArrivalSource sorts in what flushes bring: it merges level 0 into the trees of its namespaces. It
// also merges the records of single values, so that what they supersede is known. Owned by the
// lane.
#pragma once

#include "compaction/garbage_estimate.h"

namespace edgecase::engine {

class ArrivalSource final : public WorkSource {
 public:
  explicit ArrivalSource(GarbageEstimate& garbage) : garbage_(garbage) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;

 private:
  GarbageEstimate& garbage_;
};

}  // namespace edgecase::engine
