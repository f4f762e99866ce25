// Retention lets entries go as time passes. It keeps the rules that users set and what was given up
// of the oldest, and asks of the store what these need. Expired records leave the log, the time
// that was reached is noted, and what a leap of the clock let expire is held for a while
// (ExpiryClock).
//
// Threads: rules, any; what the compactor calls, Lane::Compaction. It waits for the metadata drive,
// and for nobody's turn: where it would have to wait, it answers that it is to be asked again. The
// mutex guards what was seen of a leap.
#pragma once

#include <span>
#include <vector>

#include "compaction/compactor.h"
#include "core/commit_leader.h"
#include "core/flush_lane.h"
#include "core/store.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "expiry/retention_rules.h"
#include "version/version.h"

namespace edgecase::engine {

class Retention {
 public:
  // All outlive it. `held_ns`: for so long processes before held what a leap let expire.
  Retention(const Store& store, FlushLane& flushes, CommitLeader& leader, Compactor& compactor,
            std::uint64_t held_ns)
      : store_(store), flushes_(flushes), leader_(leader), compactor_(compactor) {
    leaps_.resume(held_ns);
  }

  // As those of Engine.
  Status set(std::vector<RetentionRule> rules);
  std::vector<RetentionRule> rules() const;
  void each(NamespaceId id, const KeyRange& prefixes, const Engine::RetentionTaker& take) const;
  Eviction plan_eviction(const EvictionRequest& request) const;
  Status evict(std::span<const NamespaceId> ids, std::int64_t before_ns);
  std::int64_t evicted_before_ns(NamespaceId id) const;

  // The compaction lane's. What has expired leaves the log: memtables are flushed, slots that are
  // free overwritten. False: it is to be asked again.
  Result<bool> clear_log();
  // Makes durable what time expiry has reached, unless that is known to within a minute; and judges
  // whether what a leap of the clock has let expire may go.
  Status note_mark();
  // The same, however little is not known; when the engine goes.
  Status note_last_mark() { return note_mark_within(0); }

  void add_to(Stats& stats, const Version& version) const;

 private:
  Status note_mark_within(std::int64_t slack_ns);
  bool is_leap_in_files(std::int64_t lag_ns) EC_EXCLUDES(mutex_);
  void judge_leap();

  const Store store_;
  FlushLane& flushes_;
  CommitLeader& leader_;
  Compactor& compactor_;
  LeapGuard leaps_;
  Mutex mutex_;
  // The leap that was looked at last: by how much, and what had been written by then.
  std::int64_t seen_lag_ns_ EC_GUARDED_BY(mutex_) = 0;
  SequenceNumber leap_sequence_ EC_GUARDED_BY(mutex_) = 0;
};

// Chooses what gives way when a drive is full: the oldest entries of all namespaces that may go. It
// reckons by what value files say of themselves, without reading any. Stateless.

// As Engine::plan_eviction(). `rules` say what was given up before; null: nothing.
Eviction plan_eviction(const EvictionRequest& request, const Version& version,
                       const RetentionRules* rules);

}  // namespace edgecase::engine
