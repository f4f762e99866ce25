#include "feed/raise_limits.h"

namespace edgecase::engine {

std::vector<SequenceNumber> RaiseLimits::levels_up_to(SequenceNumber max) const {
  if (!bounds_) return {max};
  const auto end = std::lower_bound(bounds_->begin(), bounds_->end(), max);
  std::vector<SequenceNumber> levels(bounds_->begin(), end);
  if (end != bounds_->end()) levels.push_back(max);
  return levels;
}

bool RaiseLimits::raise(std::span<SequenceNumber> sequences) const {
  const auto interval_of = [this](SequenceNumber sequence) {
    return static_cast<std::size_t>(std::lower_bound(bounds_->begin(), bounds_->end(), sequence) -
                                    bounds_->begin());
  };
  if (sequences.empty()) return true;
  if (bounds_ && !bounds_->empty()) {
    std::vector<SequenceNumber> largest(bounds_->size(), 0);
    for (const SequenceNumber sequence : sequences) {
      const std::size_t interval = interval_of(sequence);
      if (interval < largest.size()) largest[interval] = std::max(largest[interval], sequence);
    }
    for (SequenceNumber& sequence : sequences) {
      const std::size_t interval = interval_of(sequence);
      if (interval < largest.size()) sequence = largest[interval];
    }
  } else if (!bounds_) {
    std::fill(sequences.begin(), sequences.end(),
              *std::max_element(sequences.begin(), sequences.end()));
  }
  return std::all_of(sequences.begin(), sequences.end(),
                     [&](SequenceNumber sequence) { return sequence == sequences.front(); });
}

}  // namespace edgecase::engine
