// SettlingSource does what is worth it only once writes rest. So a store that nobody writes to
// holds little that is dead, and then comes to rest itself. Owned by the lane.
#pragma once

#include "compaction/garbage_source.h"

namespace edgecase::engine {

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
