// Positions that the engine's merges respect, for all targets together. No entry is raised past the
// end of what a target has, or is still to get (Engine::set_feed_bounds()). Until set_all() no
// merge raises anything. Thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
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
  // A target has its cursor, the one that is kept, and the one that will be; and by itself where it
  // began, two ends of windows, and a mark.
  static constexpr std::size_t kCursorsOfTarget = 3;
  static_assert(config::kForwardTargetsMax * (kCursorsOfTarget * Cursor::kBoundsMax + 4) + 1 <=
                kFeedBoundsMax);

  explicit FeedBounds(Engine& engine) : engine_(engine) {}

  // Once, with what all targets have at the start.
  void set_all(std::map<std::string, Positions> all) {
    const MutexLock lock(mutex_);
    of_targets_.clear();
    for (auto& [name, positions] : all) of_targets_[name] = {std::move(positions), {}};
    is_set_ = true;
    apply();
  }
  void set(const std::string& target, Positions positions) {
    const MutexLock lock(mutex_);
    of_targets_[target] = {std::move(positions), {}};
    apply();
  }
  void drop(const std::string& target) {
    const MutexLock lock(mutex_);
    of_targets_.erase(target);
    apply();
  }

  // A position that divides what was committed from what will be: a bound of the target until its
  // next set() or mark(). The engine keeps it from the first moment, since it was asked for after
  // the bounds before it were set.
  CommitPosition mark(const std::string& target) {
    const MutexLock lock(mutex_);
    Bounds& bounds = of_targets_[target];
    if (bounds.positions.empty()) {
      bounds.positions.push_back(0);
      apply();
    }
    bounds.mark = engine_.committed();
    apply();
    return *bounds.mark;
  }

 private:
  struct Bounds {
    Positions positions;
    std::optional<CommitPosition> mark;
  };

  void apply() EC_REQUIRES(mutex_) {
    if (!is_set_) return;
    Positions more;
    // What lies behind the newest bound keeps a position for each entry, which takes room.
    if (!of_targets_.empty()) more.push_back(engine_.committed());
    for (const auto& [name, bounds] : of_targets_) {
      more.insert(more.end(), bounds.positions.begin(), bounds.positions.end());
      if (bounds.mark) more.push_back(*bounds.mark);
    }
    std::sort(more.begin(), more.end());
    more.erase(std::unique(more.begin(), more.end()), more.end());
    // They are not too many: see above.
    static_cast<void>(engine_.set_feed_bounds(std::move(more)).ok());
  }

  Engine& engine_;
  Mutex mutex_;
  bool is_set_ EC_GUARDED_BY(mutex_) = false;
  std::map<std::string, Bounds> of_targets_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::forward
