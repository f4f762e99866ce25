// Unsent knows what targets do not have yet: since when it waits, how long rules spare it
// (`keep-until-sent`), and what goes before it was sent, which is counted by reason.
//
//   look(), each second ─► of a target that is behind: the oldest reading that waits
//                          ├─► with keep-until-sent, before a rule takes it: a Hold; what is older
//                          │   than all that waits goes by its rule all the same
//                          └─► what expires until the look after next, and waits: counted
//   eviction, tiers, erasures ─► ask from when on readings wait, and say what they take
//
// A target is behind while it lacks something that was committed before the last look. Of one that
// is not configured all series count, since what it was to get is not known. What expires while
// nothing runs is not counted.
//
// look() and stop() are for one thread each, the rest for any. No lock is held across I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "forward/cursor.h"
#include "forward/erasures.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"

namespace edgecase::forward {

const char* leaving_name(retention::Leaving why);

class Unsent final : public retention::UnsentReadings {
 public:
  static constexpr std::int64_t kLookMinNs = 1'000'000'000;
  static constexpr std::int64_t kLookMaxNs = 60'000'000'000;
  // A look takes a hundredth of the time at most.
  static constexpr std::int64_t kRestShare = 100;
  // A hold begins before the oldest has lived this part of its time, and by so much in any case.
  static constexpr std::int64_t kHoldShare = 16;
  static constexpr std::int64_t kHoldBeforeNs = 10'000'000'000;

  struct Watch {
    WatchedTarget target;
    std::int64_t keep_ns = 0;          // 0: nothing waits
    std::int64_t from_ns = INT64_MIN;  // readings before are not to go
    Cursor cursor = Cursor();
  };

  // All outlive it; without rules (null) nothing is spared.
  Unsent(Engine& engine, const catalog::Catalog& catalog, Clock& clock,
         retention::RetentionService* rules)
      : engine_(engine), catalog_(catalog), clock_(clock), rules_(rules) {}

  // All that have a place. What was found of those that stay holds on.
  void set_targets(std::vector<Watch> all) EC_EXCLUDES(mutex_);
  void set_cursor(const std::string& target, const Cursor& cursor) EC_EXCLUDES(mutex_);
  // What was counted of it since the last call.
  UnsentCounts take(const std::string& target) EC_EXCLUDES(mutex_);
  // Nothing: nothing waits.
  std::optional<std::int64_t> oldest_ns(const std::string& target) const EC_EXCLUDES(mutex_);

  // Errors: the engine's; the rest is done all the same.
  Status look() EC_EXCLUDES(mutex_);
  std::int64_t look_again_in_ns() const { return look_again_in_ns_; }
  void stop() { is_stopping_ = true; }

  void count_leaving(retention::Leaving why, const catalog::SeriesEntry& series,
                     std::int64_t from_ns, std::int64_t to_ns, std::uint64_t weight) override
      EC_EXCLUDES(mutex_);
  std::int64_t waits_from_ns(const catalog::SeriesEntry& series) const override EC_EXCLUDES(mutex_);
  std::int64_t waits_from_ns() const override EC_EXCLUDES(mutex_);

 private:
  struct State {
    Watch watch;
    UnsentCounts counts = {};
    bool is_behind = true;
    bool is_held = false;
    std::int64_t oldest_ns = INT64_MAX;            // of what waits
    std::int64_t looked_ns = INT64_MIN;            // what came since is not known to wait
    std::optional<std::int64_t> counted_until_ns;  // what expires before is counted
  };
  using Taker = std::function<Status(const catalog::SeriesEntry& series)>;

  std::int64_t waits_from_ns(const State& state) const EC_REQUIRES(mutex_);
  std::map<std::string, State> states() const EC_EXCLUDES(mutex_);
  Status each_series(const Watch& watch, const Taker& take) const;
  Status find_oldest(State& state) const;
  Result<std::uint64_t> count(const Watch& watch, const catalog::SeriesEntry& series,
                              std::int64_t from_ns, std::int64_t to_ns) const;
  Status hold(std::map<std::string, State>& all, std::int64_t now_ns);
  Status count_past_rules(const State& state, std::int64_t now_ns);
  Status expire_sent(const std::map<std::string, State>& all, std::int64_t now_ns);
  Status count_expiring(State& state, std::int64_t now_ns, std::int64_t ahead_ns);

  Engine& engine_;
  const catalog::Catalog& catalog_;
  Clock& clock_;
  retention::RetentionService* const rules_;
  std::atomic<bool> is_stopping_{false};

  // look()'s own.
  CommitPosition seen_ = 0;  // what was committed before the last look
  std::int64_t look_again_in_ns_ = kLookMinNs;
  // By rule: before that time what was held and sent has expired.
  std::map<std::int64_t, std::int64_t> expired_ns_;

  mutable Mutex mutex_;
  std::map<std::string, State> states_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::forward
