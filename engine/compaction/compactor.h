// Compaction: the lane that merges in the background what flushes have written.
//
//   put ──> memtable ──flush──> level 0 ──sink──> runs ──relocate──> fewer runs in key order
//           small values        tables of         of one namespace:   what overlapped is
//           gathered into       all namespaces    records moved,      written again, once
//           groups                                values untouched
//                                                    │
//                    what is dead in them ──evacuate, clean, range──> value files come free
//
// Coalescing. A flush gathers small neighbouring values into groups of some KiB. One record in the
// metadata layer stands for a group, so merges read records alone wherever they can.
//
// Delayed value compaction, in two steps. A *sink* moves records from table to table: items that
// overlap nothing come into one run, the others stand side by side in runs of their own, newest
// first. No value is read. Later, once, a *relocation* reads the items that do overlap, merges them
// entry by entry and writes what lives into new value files in key order. Data that comes in order
// overlaps nothing: it is never written again.
//
// Deduplication. Records do not say which keys of a group a newer one supersedes. So tables are
// sampled, and merges tell what they found (useful_sources.h). Where enough is dead, a table is
// cleaned, a value file emptied, or a range of keys merged through all runs, whatever levels say.
//
// Purge. What has expired or was erased goes for other reasons than a newer entry, and sooner
// (due_sources.h): whole files where all of it has expired, merges where something is left.
//
// The lane. It asks its sources of work (work_source.h), those first that are more urgent:
//
//   source    what it does                                   urgency
//   erasure   erased ranges leave tables and files           due; awaited while erase() waits
//   expiry    what has expired goes                          due
//   requests  compact()                                      due
//   arrivals  level 0 into trees; records of single values   useful
//   garbage   empties value files, cleans tables             useful
//   ranges    merges small entries between two keys          useful
//   windows   makes one run of runs that are alike           useful
//   settling  what is worth it once writes rest              useful
//
// Sources that are due take turns; useful ones come in this order. A merge is carried out in slices
// of about a mebibyte, and between two of them the lane does what else waits for it. A merge that
// fails leaves the store as it was: its files go, its inputs stay, and the lane tries again after
// 1 s, 2 s, ... 60 s; meanwhile only what somebody waits for is done. DESIGN.md has more.
//
// Use: wake() after each flush; compact() to have everything merged. Thread-safe: run() and all it
// calls are tasks of the compaction lane, one at a time; other threads leave a note and wake it. No
// lock is held across I/O. Members: one for each source, and what the lane is in the middle of.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <vector>

#include "compaction/due_sources.h"
#include "compaction/erasure_source.h"
#include "compaction/merge_job.h"
#include "compaction/useful_sources.h"
#include "compaction/work_source.h"

namespace edgecase::engine {

class Compactor {
 public:
  explicit Compactor(CompactorContext context);
  ~Compactor();
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

  // Something changed: looks for work.
  void wake() { schedule_run(0); }
  // The same, and without waiting for the time at which what failed would be tried again.
  void retry_at_once();
  // Another scan begins: wakes the lane when scans have opened so many runs that merging them is
  // worth it. Costs next to nothing.
  void note_scan() {
    if (windows_.note_scan()) wake();
  }
  // Merges all of `ids` between two keys; an empty `upper` is unbounded. Waits. Only what is in
  // tables when it is called is sure to be merged, so that it ends however much others write.
  Status compact(const std::vector<NamespaceId>& ids, ByteView lower, ByteView upper);

  // Erased ranges that are pending are seen to now, whatever failed before.
  void erase_now();

  // What it did; what the current version holds is not in it.
  CompactionStats stats() const;
  // Ok, or why the last merge failed.
  Status failure() const;

  // Callers ask these directly; each says what any thread may ask.
  const ErasureSource& erasures() const { return erasures_; }
  const ExpirySource& expiry() const { return expiry_; }
  const GarbageEstimate& garbage() const { return garbage_; }

 private:
  static constexpr std::size_t kSources = 8;

  void schedule_run(std::int64_t delay_ns);
  void run();
  Result<bool> work();
  Result<bool> step_job();
  void make_way();
  Result<bool> pick();
  Result<bool> ask(WorkSource& source, const LaneView& view);
  Status start(MergePlan plan, WorkSource& source);
  Status commit();
  void discard_job();
  void give_up(const Status& cause);
  bool sets_apart(const Status& failure);
  void note_success();
  void set_timers();
  void on_timer(std::size_t source);
  bool is_idle();

  const CompactorContext context_;
  MergeFiles files_{context_};
  Removals removals_{context_};
  Mergeable mergeable_{context_.host};
  GarbageEstimate garbage_{context_};
  ErasureSource erasures_{context_, files_, removals_};
  ExpirySource expiry_{context_, removals_};
  RequestSource requests_{context_};
  ArrivalSource arrivals_{garbage_};
  WindowSource windows_{context_, garbage_};
  GarbageSource cleaning_{garbage_, windows_};
  RangeSource ranges_{context_, garbage_, windows_};
  SettlingSource settling_{cleaning_};
  const std::array<WorkSource*, kSources> order_{&erasures_, &expiry_, &requests_, &arrivals_,
                                                 &cleaning_, &ranges_, &windows_,  &settling_};
  SourceTurns turns_{order_};

  // The merge that runs; null: none. What it reads is not overwritten before it is done.
  std::unique_ptr<MergeJob> job_;
  std::shared_ptr<const Version> job_version_;
  std::set<FileNumber> lost_at_start_;  // damaged files that were known when job_ began
  WorkSource* worker_ = nullptr;        // whose merge it is
  WorkSource* busy_ = nullptr;          // it holds files, and goes on before others are asked
  std::uint64_t discarded_bytes_ = 0;   // of merges that made way
  bool paused_ = false;                 // after a failure: only what is awaited is done
  bool works_ = false;                  // the last slice left more to do
  bool waits_for_quiet_ = false;        // there is work that is not worth it under load
  bool idle_ = false;
  std::int64_t rate_since_ns_;
  std::uint64_t rate_bytes_ = 0;
  std::array<bool, kSources> timer_is_set_{};

  mutable Mutex mutex_;
  bool scheduled_ EC_GUARDED_BY(mutex_) = false;  // to run at once
  bool delayed_ EC_GUARDED_BY(mutex_) = false;    // to run later
  RetryDelay retry_ EC_GUARDED_BY(mutex_);
  Status failure_ EC_GUARDED_BY(mutex_);
  CompactionStats stats_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
