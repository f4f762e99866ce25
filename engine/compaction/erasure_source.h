// Erased ranges: merges until no table and no value file holds anything of them, waits for readers
// of old files, and hands over to the engine, which clears the log and the manifest.
//
// A *round* is of the ranges that are pending when it begins; those that come meanwhile have the
// next. Its steps:
//   1. merges, until no table holds an entry of the ranges;
//   2. a look at value files that hold something dead: what of the ranges lies there and nothing
//      points to is to be overwritten; of a file with much of it what lives moves;
//   3. once nobody reads old files any more, what was found is overwritten where it lies;
//   4. the engine does the rest, and forgets the ranges.
// A round that fails is no failure of the lane: it begins again after a while. engine/README.md,
// "Erase".
//
// Threads: what is public and not of WorkSource may be called from any; the rest is the lane's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "compaction/erasure_damage.h"
#include "compaction/purge.h"
#include "compaction/work_source.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"

namespace edgecase::engine {

// RetryDelay says how long failed work waits before it is tried again: 1 s, 2 s, 4 s, ... 60 s,
// until it succeeds. Times are of Clock::boot_ns(). The owner guards it.
class RetryDelay {
 public:
  // A drive that was busy or away for a moment is tried soon; one that stays away costs a look a
  // minute.
  static constexpr std::int64_t kMinNs = 1'000'000'000;
  static constexpr std::int64_t kMaxNs = 60'000'000'000;

  // Answers how long it waits.
  std::int64_t note_failure(std::int64_t now_ns) {
    delay_ns_ = std::clamp(2 * delay_ns_, kMinNs, kMaxNs);
    not_before_ns_ = now_ns + delay_ns_;
    return delay_ns_;
  }
  void note_success() { delay_ns_ = 0; }
  // Somebody waits for it: its next try is now.
  void end_wait() { not_before_ns_ = 0; }
  // Not above 0: it may be tried.
  std::int64_t left_ns(std::int64_t now_ns) const { return not_before_ns_ - now_ns; }

 private:
  std::int64_t delay_ns_ = 0;
  std::int64_t not_before_ns_ = 0;
};

class ErasureSource final : public WorkSource {
 public:
  ErasureSource(const CompactorContext& context, MergeFiles& files, Removals& removals);

  // Somebody waits: ranges that are pending are seen to now, whatever failed before. Wake the lane
  // then.
  void erase_now();
  // erase_now() was called, and nothing has come of it yet.
  bool is_asked() const { return asked_.load(); }
  // A round is done but for what somebody holds on to.
  bool is_held() const { return held_.load(); }
  // Ok, or why the last round failed.
  Status failure() const;
  ErasureStats stats() const;

  Urgency urgency() override;
  Result<Offer> next(const LaneView& view) override;
  // An erasure that is waited for does not wait for a merge.
  bool frees_more_than(std::uint64_t) override { return urgency() == Urgency::Awaited; }
  void committed(const FinishedMerge& merge, bool own) override;
  bool settles(const Status& failure) override;
  std::optional<std::int64_t> look_again_in_ns() override;

 private:
  struct Round {
    // Ranges as they were then: one that is erased once more meanwhile still counts here, since
    // readers may hold what the first time was found of it.
    ErasureTargets targets;
    PurgeContext purge;  // the same ranges, as merges want them
    SequenceNumber through = 0;
    // A version none of whose tables holds anything of the ranges.
    std::weak_ptr<const Version> purged;
    // Value files of the ranges' namespaces that were there when it began.
    std::set<FileNumber> to_look_at;
    LiveItems live;  // of some of these
    // What is in other files: items of the ranges that nothing points to, keys in summaries.
    std::map<FileNumber, ErasedItems> to_blank;
    std::uint64_t rewritten_bytes = 0;
  };

  std::int64_t wait_left_ns() const;
  bool begin_round();  // False: nothing that is pending is in tables yet.
  Result<bool> look_at_values(const Version& version);
  Status look_at(const Version& version, FileNumber number);
  Result<ErasedItems> find_erased(const Version& version, FileNumber number);
  Result<Offer> empty_values(const Version& version);
  Result<Offer> finish_round();
  Status remove_old_files();
  Result<bool> readers_hold();
  Status blank_items();
  Status blank_items_of(const ValueFilePlace& place, const ErasedItems& erased);

  const CompactorContext& context_;
  Removals& removals_;
  ErasureDamage damage_;
  std::optional<Round> round_;
  std::set<FileNumber> uncertain_blanks_;  // of files in which zeros may not be on the drive
  std::atomic<bool> held_{false};
  std::atomic<bool> asked_{false};

  mutable Mutex mutex_;
  RetryDelay retry_ EC_GUARDED_BY(mutex_);
  Status failure_ EC_GUARDED_BY(mutex_);
  ErasureStats stats_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
