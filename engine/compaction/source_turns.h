// SourceTurns says in which order the lane (compactor.h) asks its sources, and which of them a
// merge makes way for. Sources whose work is due take turns, from the one behind the last on, so
// that none keeps the others waiting for good. All else goes by the order of the sources. Owned by
// the lane.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compaction/work_source.h"

namespace edgecase::engine {

class SourceTurns {
 public:
  // The first comes first. The sources, and the list of them, outlive it.
  explicit SourceTurns(std::span<WorkSource* const> order) : order_(order) {}

  // The sources that have work of this urgency, in the order in which they are to be asked.
  std::vector<WorkSource*> of(Urgency urgency) const;
  // It did something that was due: the next turn is of those behind it.
  void note_turn(const WorkSource& source) { last_due_ = &source; }
  // The first in the order has the next turn.
  void begin_anew() { last_due_ = nullptr; }

  // Whether a source before `worker` would free more than its merge has written, and cannot wait.
  bool has_sooner(const WorkSource& worker, std::uint64_t written_bytes) const;
  // Whether somebody waits for a source before `worker`.
  bool has_awaited_before(const WorkSource& worker) const;

 private:
  std::span<WorkSource* const> before(const WorkSource& worker) const;

  const std::span<WorkSource* const> order_;
  const WorkSource* last_due_ = nullptr;  // had the last turn
};

}  // namespace edgecase::engine
