// Positions that the engine's merges respect, for all targets together. No entry is raised past the
// end of what a target has, or is still to get (Engine::set_feed_bounds()). Until set_all() no
// merge raises anything. Thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/forward_target.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "forward/cursor.h"

namespace edgecase::forward {

class FeedBounds {
 public:
  using Positions = std::vector<CommitPosition>;
  // A target has its cursor, the one that is kept, the one that will be, and where it began.
  static constexpr std::size_t kCursorsOfTarget = 3;
  static_assert(config::kForwardTargetsMax * (kCursorsOfTarget * Cursor::kBoundsMax + 3) + 1 <=
                kFeedBoundsMax);

  explicit FeedBounds(Engine& engine) : engine_(engine) {}

  // Once, with what all targets have at the start.
  void set_all(std::map<std::string, Positions> all) {
    const MutexLock lock(mutex_);
    of_targets_ = std::move(all);
    is_set_ = true;
    apply();
  }
  void set(const std::string& target, Positions positions) {
    const MutexLock lock(mutex_);
    of_targets_[target] = std::move(positions);
    apply();
  }
  void drop(const std::string& target) {
    const MutexLock lock(mutex_);
    of_targets_.erase(target);
    apply();
  }

  // A position that divides what was committed from what will be: a bound of the target until its
  // next set(). The engine keeps it from the first moment, since it was asked for after the bounds
  // before it were set.
  CommitPosition mark(const std::string& target) {
    const MutexLock lock(mutex_);
    Positions& positions = of_targets_[target];
    if (positions.empty()) {
      positions.push_back(0);
      apply();
    }
    positions.push_back(engine_.committed());
    const CommitPosition marked = positions.back();
    apply();
    return marked;
  }

 private:
  void apply() EC_REQUIRES(mutex_) {
    if (!is_set_) return;
    Positions more;
    // What lies behind the newest bound keeps a position for each entry, which takes room.
    if (!of_targets_.empty()) more.push_back(engine_.committed());
    for (const auto& [name, positions] : of_targets_)
      more.insert(more.end(), positions.begin(), positions.end());
    std::sort(more.begin(), more.end());
    more.erase(std::unique(more.begin(), more.end()), more.end());
    // They are not too many: see above.
    static_cast<void>(engine_.set_feed_bounds(std::move(more)).ok());
  }

  Engine& engine_;
  Mutex mutex_;
  bool is_set_ EC_GUARDED_BY(mutex_) = false;
  std::map<std::string, Positions> of_targets_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::forward
