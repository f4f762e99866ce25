// Limits of how far the sequences of entries may rise that are written again. A group whose entries
// share one sequence needs no column for it; but whoever reads what is newer than a position
// (engine/feed/DESIGN.md) must not see old entries as new, nor miss what was not read yet.
// FeedBounds has where feeds stand, for all that write entries again.
//
// Flushes and merges take a copy when they begin. A value; immutable.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

class RaiseLimits {
 public:
  // Nobody reads by positions: any sequence may rise.
  RaiseLimits() = default;
  // No entry comes from at most a bound behind it, and none behind the newest rises: bounds that
  // are set while a merge runs lie there.
  explicit RaiseLimits(std::vector<SequenceNumber> bounds) : bounds_(std::move(bounds)) {
    std::sort(bounds_->begin(), bounds_->end());
    bounds_->erase(std::unique(bounds_->begin(), bounds_->end()), bounds_->end());
  }

  // Where feeds stand is not known.
  static RaiseLimits none_rises() { return RaiseLimits(std::vector<SequenceNumber>()); }

  bool is_free() const { return !bounds_.has_value(); }

  // Where nothing but the entries themselves has a sequence up to `max`: what they may rise to. An
  // entry takes the first of these that is not below its own, or else keeps its own. Ascending.
  std::vector<SequenceNumber> levels_up_to(SequenceNumber max) const;

  // The same for the entries of one group, each interval's to the largest that is there. Whether
  // all are alike then.
  bool raise(std::span<SequenceNumber> sequences) const;

 private:
  std::optional<std::vector<SequenceNumber>> bounds_;  // ascending
};

inline std::vector<SequenceNumber> RaiseLimits::levels_up_to(SequenceNumber max) const {
  if (!bounds_) return {max};
  const auto end = std::lower_bound(bounds_->begin(), bounds_->end(), max);
  std::vector<SequenceNumber> levels(bounds_->begin(), end);
  if (end != bounds_->end()) levels.push_back(max);
  return levels;
}

inline bool RaiseLimits::raise(std::span<SequenceNumber> sequences) const {
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

// One sequence by such levels.
inline SequenceNumber raised(std::span<const SequenceNumber> levels, SequenceNumber sequence) {
  const auto level = std::lower_bound(levels.begin(), levels.end(), sequence);
  return level == levels.end() ? sequence : *level;
}

// Engine::set_feed_bounds(). Thread-safe; its mutex is held for a copy of a pointer.
class FeedBounds {
 public:
  // `expected`: somebody will say where feeds stand (Options::feeds); nothing rises until then.
  explicit FeedBounds(bool expected)
      : limits_(std::make_shared<const RaiseLimits>(expected ? RaiseLimits::none_rises()
                                                             : RaiseLimits())) {}

  void set(std::vector<SequenceNumber> bounds) EC_EXCLUDES(mutex_) {
    auto limits = bounds.empty() ? std::make_shared<const RaiseLimits>()
                                 : std::make_shared<const RaiseLimits>(std::move(bounds));
    MutexLock lock(mutex_);
    limits_ = std::move(limits);
  }

  RaiseLimits limits() const EC_EXCLUDES(mutex_) {
    std::shared_ptr<const RaiseLimits> limits;
    {
      MutexLock lock(mutex_);
      limits = limits_;
    }
    return *limits;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const RaiseLimits> limits_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
