// The cursor of a target: which of the store's commits it does not have yet. A short list of ranges
// of positions (edgecase/engine.h), and how far each of them is sent. A pure data structure; one
// thread. FeedBounds has the ends of all cursors as bounds of the engine's merges.
//
//        sent      backlog       sent     backlog   sent        fresh
//   0 ─────────┤ (a₁ ... b₁] ├─────────┤ (a₂ .. b₂] ├──────┤ (f ... now]
//                  └ done_to: of this range everything up to that key is there
//
// A range is read in the order of keys, not of commits: so a place in it is a key. The open range
// has none: either all of it goes in one batch, or it is closed and becomes backlog.
//
// As it is kept (in the record of a target, records.h), numbers big-endian:
//
//   offset 0   8  f
//          8   1  ranges of backlog, at most kBacklogMax, each:
//                   8 a, 8 b, 4 namespace of done_to (0: none), 2 bytes of its key, the key
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"

namespace edgecase::forward {

// A key of a namespace; namespaces come in the order of their numbers.
struct Place {
  NamespaceId namespace_id = 0;
  Bytes key;

  friend bool operator==(const Place&, const Place&) = default;
  friend bool operator<(const Place& a, const Place& b) {
    return a.namespace_id != b.namespace_id ? a.namespace_id < b.namespace_id : a.key < b.key;
  }
};

struct Backlog {
  CommitPosition after = 0, upto = 0;  // of the one, up to and including the other
  std::optional<Place> done_to;

  friend bool operator==(const Backlog&, const Backlog&) = default;
};

class Cursor {
 public:
  // More than these become fewer, and what lies between two of them goes twice.
  static constexpr std::size_t kBacklogMax = 4;
  // Positions that bounds() answers at most.
  static constexpr std::size_t kBoundsMax = 2 * kBacklogMax + 1;

  // Nothing of what was committed after `position` is there.
  explicit Cursor(CommitPosition position = 0) : fresh_after_(position) {}

  CommitPosition fresh_after() const { return fresh_after_; }
  // Oldest first.
  const std::vector<Backlog>& backlog() const { return backlog_; }
  // After which everything lies that is not there.
  CommitPosition oldest() const { return backlog_.empty() ? fresh_after_ : backlog_.front().after; }

  // The fresh range is there up to `upto`.
  void fresh_done(CommitPosition upto) { fresh_after_ = upto; }
  // It is closed at `upto`; without a place nothing of it is there yet.
  void fresh_part(CommitPosition upto, std::optional<Place> done_to);
  // The same of a range of backlog, by its index.
  void backlog_done(std::size_t index);
  void backlog_part(std::size_t index, Place done_to) {
    backlog_[index].done_to = std::move(done_to);
  }
  // The same as one open range: for who is not guarded by bounds for a while.
  Cursor collapsed() const { return Cursor(oldest()); }

  // Positions that no merge may raise an older entry past: ends of what is there and what is not.
  // In order, none twice.
  std::vector<CommitPosition> bounds() const;

  void append_to(Bytes& out) const;
  // Takes it off the front of `bytes`. Corruption: it is none.
  static Result<Cursor> take(ByteView& bytes);

  friend bool operator==(const Cursor&, const Cursor&) = default;

 private:
  CommitPosition fresh_after_ = 0;
  std::vector<Backlog> backlog_;
};

// Positions that the engine's merges respect, for all targets together. No entry is raised past the
// end of what a target has, or is still to get (Engine::set_feed_bounds()). Until set_all() no
// merge raises anything. Thread-safe.
class FeedBounds {
 public:
  using Positions = std::vector<CommitPosition>;
  // A target has its cursor, the one that is kept, and the one that will be; and by itself where it
  // began, a mark, and two ends: of windows, or of what is summed up.
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
