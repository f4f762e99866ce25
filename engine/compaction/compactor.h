// Runs merges in the background: picks what is to be merged, works in slices on the compaction
// lane, commits, unlinks what nobody reads any more.
//
// Use: wake() after each flush; compact() to have everything merged. Thread-safe. Its tasks go
// through the scheduler it is given, which must not run them after the compactor is gone. No lock
// is held across I/O.
//
// A merge that fails leaves the store as it was: its files are removed, its inputs stay, and it is
// tried again after kRetryDelayMinNs, twice that, ... kRetryDelayMaxNs.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compaction/compaction_host.h"
#include "compaction/erasure_look.h"
#include "compaction/garbage_ledger.h"
#include "compaction/merge_job.h"
#include "compaction/picker.h"
#include "compaction/purge.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "edgecase/stats.h"
#include "file/file_remover.h"
#include "version/file_number_block.h"
#include "version/version_set.h"

namespace edgecase::engine {

inline constexpr std::uint64_t kDiscardedBytesMin = 256u << 20;

// What outlives the compactor.
struct CompactorContext {
  const Options& options;
  const Environment& environment;
  StoreId store_id;
  VersionSet& versions;
  TableCache& tables;
  CompactionHost& host;
  FileRemover& remover;      // of files that nobody names any more
  DropRule* rule = nullptr;  // null: none
  KeyRing* keys = nullptr;   // null: not encrypted
  // Merges that stop for an erasure, or for what has expired, begin again later: as much work may
  // be lost to that, and a part of all that merges ever wrote.
  std::uint64_t discarded_bytes_min = kDiscardedBytesMin;
};

// Bytes of garbage a useful byte, in value files; `suspected_bytes` of what tables point to count
// as garbage; `coming_bytes` are yet to be flushed.
double garbage_share(const Version& version, std::uint64_t suspected_bytes,
                     std::uint64_t coming_bytes = 0);

class Compactor {
 public:
  explicit Compactor(CompactorContext context);
  ~Compactor();
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

  // Something changed: looks for work.
  void wake();
  // Another scan begins: wakes it when scans have opened so many runs that merging them is worth
  // it. Costs next to nothing.
  void note_scan() {
    if (scan_runs() < scan_runs_wanted_.load(std::memory_order_relaxed)) return;
    scan_runs_wanted_.store(UINT64_MAX, std::memory_order_relaxed);
    wake();
  }
  // As wake(), and without waiting for the time at which what failed would be tried again.
  void retry_at_once();
  // Merges all of `ids` between two keys; an empty `upper` is unbounded. Waits. Only what is in
  // tables when it is called is sure to be merged, so that it ends however much others write.
  Status compact(const std::vector<NamespaceId>& ids, ByteView lower, ByteView upper);

  // Erased ranges that are pending are seen to now, whatever failed before.
  void erase_now();
  ErasureStats erasure_stats() const;
  // Ok, or why the last round failed.
  Status erasure_failure() const;
  // A round is done but for what somebody holds on to.
  bool erasure_is_held() const { return erasure_is_held_.load(); }
  // erase_now() was called, and nothing has come of it yet.
  bool erasure_is_asked() const { return erasure_asked_.load(); }

  // What it did; what the current version holds is not in it.
  CompactionStats stats() const;
  ExpiryStats expiry_stats() const;
  // What samples say is dead in groups.
  std::uint64_t suspected_bytes() const { return suspected_bytes_.load(); }
  // The garbage share when the lane last looked and nothing of it was worth cleaning; 0 if
  // something was.
  double idle_garbage() const { return idle_garbage_.load(); }
  // How much more of it there is with each byte that flushes write.
  double dying_share() const { return dying_share_.load(); }
  // So much garbage a useful byte may be there beyond what a store may hold that does not grow.
  double garbage_grace() const;
  // Ok, or why the last merge failed.
  Status failure() const;

 private:
  static constexpr std::int64_t kRetryDelayMinNs = 1'000'000'000;
  static constexpr std::int64_t kRetryDelayMaxNs = 60'000'000'000;
  // A slice or a range takes one part in so many of the store.
  static constexpr std::uint64_t kSlicePart = 32;
  static constexpr std::int64_t kCompactStallNs = 100'000'000;
  // In quiet, and at the end of compact().
  static constexpr EvacuationLimits kQuietEvacuation{0.08, 0.1, nullptr};

  struct Request {
    std::vector<NamespaceId> ids;  // ascending
    Bytes lower;
    Bytes upper;
    SequenceNumber upto = 0;  // newest that was in tables when it was made
    bool done = false;
    Status status;
  };

  // A relocation slice by slice: what its next slice goes on with. If the process ends in between,
  // what was relocated is a run like others, and the rest is looked at anew.
  struct Slicing {
    NamespaceId namespace_id = 0;
    std::set<FileNumber> runs;
    std::uint64_t slice_bytes = 0;
    FileNumber output_run = 0;  // 0: the first slice makes it
    std::uint8_t output_level = 0;
  };

  // A round of erasing: the lane's.
  struct Erasure {
    // As they were then: a range that is erased once more meanwhile still counts here, since
    // readers may hold what the first time was found of it.
    std::vector<RangeDelete> ranges;  // disjoint, in key order
    PurgeContext purge;               // the same, as merges want it
    SequenceNumber through = 0;
    // Of tables: none holds anything of the ranges.
    std::weak_ptr<const Version> purged;
    // Value files of the ranges' namespaces that were there when it began.
    std::set<FileNumber> to_look_at;
    LiveItems live;                 // of some of these
    std::set<FileNumber> to_empty;  // those that hold much of the ranges
    // What is in other files: items of the ranges that nothing points to, keys in summaries.
    std::map<FileNumber, ErasedItems> to_blank;
    std::set<FileNumber> carved;      // damaged tables of which all that matters can be read
    std::uint64_t written_bytes = 0;  // by merges, before
  };

  void run();
  void schedule_run(std::int64_t delay_ns);
  void remove_obsolete_files();
  void remove_some();
  void retry_removals();
  // One slice. True when there is more to do at once.
  Result<bool> work();
  Result<bool> pick();
  Result<bool> pick_requested(const Version& version);
  Result<bool> pick_expired(const Version& version);
  Result<bool> forget_expired_keys();
  Result<bool> pick_covered(const Version& version);
  bool may_erase();
  Result<bool> pick_pending(const std::shared_ptr<const Version>& version);
  void begin_erasure();
  Result<bool> pick_erasure(const std::shared_ptr<const Version>& version);
  Result<bool> start_erasing(MergePlan plan);
  Result<bool> look_at_values(const Version& version, std::span<const RangeDelete> ranges);
  Status look_at(const Version& version, FileNumber number, std::span<const RangeDelete> ranges);
  Result<bool> empty_values(const Version& version);
  Result<ErasedItems> find_erased(const Version& version, FileNumber number,
                                  std::span<const RangeDelete> ranges);
  ValueFilePlace place_of(FileNumber number, Placement placement) const;
  bool concerns_erasure(const TableMetadata& table) const;
  Result<bool> pick_damaged(const Version& version);
  Result<bool> carve(const Version& version, const TableMetadata& table);
  bool finds_damage_at(const Version& version, FileNumber number);
  Result<bool> destroy_unreadable(const Version& version, FileNumber number);
  Result<bool> readers_hold(std::span<const RangeDelete> ranges);
  Status blank_items();
  Status blank_items_of(const ValueFilePlace& place, const ErasedItems& erased);
  Result<bool> finish_erasure(std::span<const RangeDelete> ranges);
  void make_way_for_erasure();
  void make_way_for_expiry();
  bool finds_room(const Status& failure);
  bool may_discard(std::uint64_t lost_bytes) const;
  void fail_erasure(const Status& failure);
  void schedule_erasure(std::int64_t delay_ns);
  void discard_job();
  void schedule_expiry();
  std::int64_t until_expiry_check_ns() const;
  bool is_exact() const { return context_.options.expiry == ExpiryMode::Exact; }
  using Overlaps = std::map<std::vector<FileNumber>, Overlap>;  // by runs
  Result<bool> pick_window(const Version& version);
  Overlaps::const_iterator find_surveyed(const Window& window) const;
  Result<bool> pick_sink(const Version& version);
  Result<bool> pick_settling(const Version& version);
  void follow_garbage(const Version& version);
  std::uint64_t suspect_singles(const Version& version);
  void note_singles(const MergePlan& plan, const MergeCounters& counters);
  void note_commit(std::span<const TableMetadata> cleaned, bool from_level0);
  void list_probes(const Version& version, std::uint64_t age_bytes_min);
  Result<bool> probe(const Version& version);
  Result<bool> probe_growth(const Version& version);
  bool has_garbage(const Version& version) const;
  EvacuationLimits evacuation_limits(const Version& version) const;
  std::optional<MergePlan> pick_cleaning(const Version& version);
  std::uint64_t slice_bytes(const Version& version, std::size_t runs, std::uint64_t part) const;
  static bool is_merged_by_range(const Tree& tree, const Run& run);
  std::optional<MergePlan> pick_range(const Version& version, NamespaceId id, const Run& deadest,
                                      double garbage);
  void note_range(const MergePlan& plan, std::span<const TableMetadata> merged);
  void note_rests(const MergeJob& job, const TableOutput& output);
  Result<bool> survey();
  Result<bool> start(MergePlan plan);
  Result<bool> start_slices(const Version& version, MergePlan plan, bool is_scanned);
  Result<bool> start_slice(const Version& version);
  void note_slice(const TableOutput& output, bool leaves_rest);
  std::shared_ptr<const Version> mergeable(std::shared_ptr<const Version> version);
  bool sets_apart(const Status& failure);
  Status commit();
  void remove_output(const TableOutput& output);
  void give_up(const Status& cause);
  void note_success();
  void finish_request(const Status& status);
  bool is_idle();
  bool is_asked() const;
  std::uint64_t budget_bytes() const;
  std::uint64_t scan_runs() const {
    return context_.tables.counters().more_runs.load(std::memory_order_relaxed);
  }

  const CompactorContext context_;
  const TableWriterContext writer_context_;
  std::atomic<std::uint64_t> suspected_bytes_{0};  // written by the lane
  std::atomic<double> dying_share_{0};             // the same
  std::atomic<double> idle_garbage_{0};            // the same
  std::atomic<double> replacing_share_{0};         // the same: of what flushes write

  // The lane's.
  std::unique_ptr<MergeJob> job_;
  // What job_ and survey_ read: its files are not overwritten before they are done.
  std::shared_ptr<const Version> read_version_;
  bool job_erases_ = false;
  bool job_expires_ = false;
  std::int64_t way_not_before_ns_ = 0;   // what has expired does not interrupt merges sooner
  bool manifest_names_expired_ = false;  // keys of files that have expired
  bool log_is_behind_ = false;           // it holds what has expired
  bool removes_expired_ = false;         // before anything else is done: a second is soon over
  bool works_ = false;                   // the last slice left more to do
  std::uint32_t slices_since_removal_ = 0;
  std::int64_t removals_not_before_ns_ = 0;  // those that resisted
  std::uint64_t discarded_bytes_ = 0;        // of merges that made way for erasures and expiry
  std::optional<Erasure> erasure_;
  std::set<FileNumber> uncertain_blanks_;  // of files in which zeros may not be on the drive
  std::atomic<bool> erasure_is_held_{false};
  std::atomic<bool> erasure_asked_{false};  // and nothing has come of it yet
  bool paused_ = false;                     // after a failure: only what is asked for is done
  std::unique_ptr<Survey> survey_;
  Window surveyed_;
  std::optional<Slicing> slicing_;
  // What mergeable() made last, of which version and files.
  std::shared_ptr<const Version> mergeable_;
  std::weak_ptr<const Version> mergeable_of_;
  std::set<FileNumber> mergeable_without_;
  // Where the last merge of a range ended, in its namespace and life class.
  std::map<std::pair<NamespaceId, LifeClass>, Bytes> range_ends_;
  Overlaps overlaps_;  // what surveys said of windows
  GarbageLedger ledger_;
  std::uint64_t suspected_singles_bytes_ = 0;
  double superseding_share_ = 0;      // by values of smaller runs, of older ones
  std::deque<FileNumber> to_probe_;   // tables that may hold much that is dead
  bool settles_garbage_ = false;      // in quiet: little that is dead makes cleaning worth it
  std::size_t fruitless_probes_ = 0;  // in a row
  std::size_t rounds_to_skip_ = 0;    // of sampling, since so little was found
  std::size_t skipped_rounds_ = 0;
  FileNumber growth_probed_ = 0;           // the newest table whose keys were looked for
  std::uint64_t growth_probed_bytes_ = 0;  // what flushes had written then
  FileNumber settled_up_to_ = 0;           // the newest table when all was probed in quiet
  SeededRandom random_{1};                 // for samples
  std::vector<TableOutput> given_up_;      // files of edits that did not succeed for certain
  std::shared_ptr<Request> current_;
  std::size_t current_step_ = 0;
  std::set<FileNumber> to_empty_;  // value files that were there when all else was merged
  FileNumberBlock numbers_;
  std::uint64_t relocated_bytes_ = 0;                        // that counts against the budget
  std::uint64_t scan_runs_spent_ = 0;                        // of scan_runs(), on relocations
  std::atomic<std::uint64_t> scan_runs_wanted_{UINT64_MAX};  // until there is one for them
  bool expired_last_ = false;     // the last work was of expiry: who waits is next
  bool waits_for_quiet_ = false;  // there is work that is not worth it under load
  bool idle_ = false;
  std::int64_t rate_since_ns_;
  std::uint64_t rate_bytes_ = 0;

  mutable Mutex mutex_;
  CondVar request_done_;
  std::deque<std::shared_ptr<Request>> requests_ EC_GUARDED_BY(mutex_);
  bool scheduled_ EC_GUARDED_BY(mutex_) = false;  // to run at once
  bool delayed_ EC_GUARDED_BY(mutex_) = false;    // to run later
  bool expiry_scheduled_ EC_GUARDED_BY(mutex_) = false;
  std::int64_t retry_delay_ns_ EC_GUARDED_BY(mutex_) = 0;
  std::int64_t retry_not_before_ns_ EC_GUARDED_BY(mutex_) = 0;
  Status failure_ EC_GUARDED_BY(mutex_);
  bool erasure_scheduled_ EC_GUARDED_BY(mutex_) = false;
  std::int64_t erasure_delay_ns_ EC_GUARDED_BY(mutex_) = 0;
  std::int64_t erasure_not_before_ns_ EC_GUARDED_BY(mutex_) = 0;
  Status erasure_failure_ EC_GUARDED_BY(mutex_);
  ErasureStats erasure_stats_ EC_GUARDED_BY(mutex_);
  ExpiryStats expiry_stats_ EC_GUARDED_BY(mutex_);
  CompactionStats stats_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
