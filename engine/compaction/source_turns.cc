#include "compaction/source_turns.h"

#include <algorithm>

namespace edgecase::engine {

std::vector<WorkSource*> SourceTurns::of(Urgency urgency) const {
  std::vector<WorkSource*> sources;
  for (WorkSource* const source : order_)
    if (source->urgency() == urgency) sources.push_back(source);
  if (urgency != Urgency::Due) return sources;
  const auto last = std::find(sources.begin(), sources.end(), last_due_);
  if (last != sources.end()) std::rotate(sources.begin(), last + 1, sources.end());
  return sources;
}

bool SourceTurns::has_sooner(const WorkSource& worker, std::uint64_t written_bytes) const {
  const auto sources = before(worker);
  return std::any_of(sources.begin(), sources.end(),
                     [&](WorkSource* source) { return source->frees_more_than(written_bytes); });
}

bool SourceTurns::has_awaited_before(const WorkSource& worker) const {
  const auto sources = before(worker);
  return std::any_of(sources.begin(), sources.end(),
                     [](WorkSource* source) { return source->urgency() == Urgency::Awaited; });
}

std::span<WorkSource* const> SourceTurns::before(const WorkSource& worker) const {
  const auto at = std::find(order_.begin(), order_.end(), &worker);
  return order_.first(static_cast<std::size_t>(at - order_.begin()));
}

}  // namespace edgecase::engine
