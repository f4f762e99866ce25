// Unsent knows what targets do not have yet: since when it waits, how long rules spare it
// (`keep-until-sent`), and what goes before it was sent, which is counted by reason.
//
//   look(), each second ─► of a target that is behind: the oldest reading that waits
//                          ├─► with keep-until-sent, before a rule takes it: a Hold; what is older
//                          │   than all that waits goes by its rule all the same
//                          ├─► what expires until the look after next, and waits: counted
//                          └─► where the engine's time is behind the clock: what a leap would take
//   eviction, tiers, erasures ─► ask from when on readings wait, and say what they take; of what
//                                becomes windows these are owed then (thinned.h)
//
// A target is behind while it lacks something that was committed before the last look. Of one that
// is not configured all series count, since what it was to get is not known. What has expired
// cannot be counted any more: so a step of the clock, as after a time without power, waits for the
// look that foresees it (HeldClock), and counts once the engine has followed.
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

#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "forward/cursor.h"
#include "forward/erasures.h"
#include "forward/thinned.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"

namespace edgecase::forward {

const char* leaving_name(retention::Leaving why);

// The engine's clock: the machine's, not trusted while it is ahead of what a look has seen of it.
// Thread-safe.
class HeldClock final : public Clock {
 public:
  static constexpr std::int64_t kStepNs = 1'000'000'000;  // less is no step

  explicit HeldClock(Clock& machine) : machine_(machine) {}
  std::int64_t wall_ns() const override { return machine_.wall_ns(); }
  std::int64_t boot_ns() const override { return machine_.boot_ns(); }
  bool synchronised() const override { return machine_.synchronised(); }
  ClockTrust trust() const override {
    const bool is_held = offset_ns() > followed_ns_;
    return is_held ? ClockTrust::Untrusted : machine_.trust();
  }

  std::int64_t offset_ns() const { return machine_.wall_ns() - machine_.boot_ns(); }
  // Until it steps beyond that.
  void follow(std::int64_t offset_ns) { followed_ns_ = offset_ns + kStepNs; }
  void follow_always() { followed_ns_ = INT64_MAX; }

 private:
  Clock& machine_;
  std::atomic<std::int64_t> followed_ns_{INT64_MIN};
};

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
    std::int64_t expired_until_ns = kUncounted;  // as of Totals; of one that is new here
    std::optional<Cursor> kept = {};             // what it cannot forget any more; none: `cursor`
  };

  // All outlive it; without rules (null) nothing is spared, without `held` no step waits, without
  // `thinned` no windows go.
  Unsent(Engine& engine, const catalog::Catalog& catalog, Clock& clock,
         retention::RetentionService* rules, HeldClock* held = nullptr, Thinned* thinned = nullptr)
      : engine_(engine),
        catalog_(catalog),
        clock_(clock),
        rules_(rules),
        held_(held),
        thinned_(thinned) {}

  // All that have a place. What was found of those that stay holds on.
  void set_targets(std::vector<Watch> all) EC_EXCLUDES(mutex_);
  // `kept`: what it cannot forget any more.
  void set_cursor(const std::string& target, const Cursor& cursor, const Cursor& kept)
      EC_EXCLUDES(mutex_);
  // Adds what was counted of it since the last call; whether there is something.
  bool take(const std::string& target, Totals& totals) EC_EXCLUDES(mutex_);
  // Nothing: nothing waits.
  std::optional<std::int64_t> oldest_ns(const std::string& target) const EC_EXCLUDES(mutex_);

  // Errors: the engine's; the rest is done all the same. At the start twice: what went meanwhile
  // is foreseen, then counted. `finds`: false where the last look found the oldest that waits, and
  // nothing came or was sent since; each series is asked for it.
  Status look(bool finds = true) EC_EXCLUDES(mutex_);
  std::int64_t look_again_in_ns() const { return look_again_in_ns_; }
  void stop() { is_stopping_ = true; }

  void count_leaving(retention::Leaving why, const catalog::SeriesEntry& series,
                     std::int64_t from_ns, std::int64_t to_ns, std::uint64_t weight) override
      EC_EXCLUDES(mutex_);
  Status leave_thinned(const catalog::SeriesEntry& series, std::int64_t before_ns,
                       WriteBatch& batch) override EC_EXCLUDES(mutex_);
  void left_thinned() override {
    if (thinned_ != nullptr) thinned_->note_owed();
  }
  // A namespace goes, with all that waits in it.
  void count_dropped(const std::string& namespace_name) EC_EXCLUDES(mutex_);
  std::int64_t waits_from_ns(const catalog::SeriesEntry& series) const override EC_EXCLUDES(mutex_);
  std::int64_t waits_from_ns() const override EC_EXCLUDES(mutex_);

 private:
  // The engine's time has not followed the clock yet.
  struct Leap {
    std::int64_t half_ns = 0;  // behind it that was done
    std::int64_t until_ns = 0;
    std::uint64_t expired = 0;
  };
  struct State {
    Watch watch;
    UnsentCounts counts = {};
    bool is_behind = true;
    bool is_held = false;
    std::int64_t oldest_ns = INT64_MAX;          // of what waits
    std::int64_t looked_ns = INT64_MIN;          // what came since is not known to wait
    std::int64_t counted_until_ns = kUncounted;  // what expires before is counted
    std::optional<Leap> leap = {};
  };
  using Taker = std::function<Status(const catalog::SeriesEntry& series)>;

  std::int64_t waits_from_ns(const State& state) const EC_REQUIRES(mutex_);
  std::map<std::string, State> states() const EC_EXCLUDES(mutex_);
  Status each_series(const Watch& watch, const Taker& take) const;
  // Looks no further than to the first reading.
  Result<bool> has_waiting(const Watch& watch) const;
  Status find_oldest(State& state) const;
  // The time of the first reading that is newer; INT64_MAX: there is none.
  Result<std::int64_t> first_newer(NamespaceId id, const KeyRange& keys,
                                   CommitPosition after) const;
  Result<std::uint64_t> count(const Watch& watch, const catalog::SeriesEntry& series,
                              std::int64_t from_ns, std::int64_t to_ns) const;
  Status hold(std::map<std::string, State>& all, std::int64_t now_ns);
  Status count_past_rules(const State& state, std::int64_t now_ns);
  Status expire_sent(const std::map<std::string, State>& all, std::int64_t now_ns);
  Status count_expiring(State& state, std::int64_t now_ns, std::int64_t ahead_ns)
      EC_EXCLUDES(mutex_);
  // What waits and expires between the two.
  Result<std::uint64_t> expiring(const State& state, std::int64_t begin_ns,
                                 std::int64_t end_ns) const;

  Engine& engine_;
  const catalog::Catalog& catalog_;
  Clock& clock_;
  retention::RetentionService* const rules_;
  HeldClock* const held_;
  Thinned* const thinned_;
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
