// The sources of work that is useful and not due: what flushes bring is sorted in, runs alike in
// size become one, what is dead goes, by what is reckoned to be dead (GarbageEstimate). compactor.h
// has their order. Owned by the lane.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/work_source.h"
#include "edgecase/machine.h"
#include "table/table_cache.h"
#include "version/version.h"

namespace edgecase::engine {

// GarbageEstimate reckons how much of a store is garbage. Of value files it is counted: bytes that
// no table points to. Groups do not say which of their keys newer runs supersede, so tables are
// sampled, and samples carried on (GarbageLedger). For single values the last merge is the
// measure. It also tells how much of what arrives takes the place of something, which shows whether
// a store grows.
//
// Threads: the lane's, but for what says otherwise.

// GarbageLedger keeps, for each table of groups, how much of it newer runs supersede. A sample
// holds for a while; then it is carried on by the rate at which tables were seen to die. Its clock
// is the bytes that flushes wrote: a table that nobody overwrites does not die. Owned by one
// thread.
class GarbageLedger {
 public:
  // The tables of a version; those of others are forgotten. Its clock stands at `written_bytes`.
  void follow(const Version& version, std::uint64_t written_bytes);
  // `dead_share` of a table, between 0 and 1, was dead just now.
  void note(FileNumber table, double dead_share);

  // `part` is a new table of a part of `table`, and as dead.
  void pass_on(FileNumber table, FileNumber part, std::uint64_t item_bytes);

  // Whether something was written since it was noted, or it never was.
  bool is_stale(FileNumber table) const;
  // Bytes written since; all of them if it was never noted.
  std::uint64_t age_bytes(FileNumber table) const;
  // As of now.
  double dead_share(FileNumber table) const;
  // Dead bytes of all tables.
  std::uint64_t dead_bytes() const;
  // How much more dies with each byte that flushes write.
  double dying_share() const;

 private:
  struct Note {
    std::uint64_t item_bytes = 0;
    bool noted = false;
    double live_share = 1;
    std::uint64_t at_bytes = 0;  // when it was noted, or first seen
  };

  double live_share(const Note& note) const;

  std::map<FileNumber, Note> notes_;
  std::uint64_t written_bytes_ = 0;
  // Learned from two notes of one table: the sum of what the logarithm of the share that lives
  // lost, and of the bytes that were written meanwhile. Old sums fade.
  double lost_ = 0;
  double lost_over_bytes_ = 0;
};

// Estimates which part of a table's entries newer runs supersede, from a sample: groups do not say
// which of their keys are dead. It costs a few groups and, of every newer run, a few blocks of
// records and the groups that hold what is dead.

// The dead share, 0 to 1, of the table that `plan` is to clean. `random` chooses the sample.
Result<double> probe_dead_share(TableCache& tables, const MergePlan& plan, std::uint64_t random);

// Which part of what a flush wrote takes the place of older entries, from a sample of the keys that
// items of `table`, which is in level 0, begin with; nothing where these are too few, or all of
// series, whose entries are written once. Costs of every older run a few blocks of records.
Result<std::optional<double>> probe_replacing_share(TableCache& tables, const Version& version,
                                                    const TablePointer& table,
                                                    std::uint64_t random);

// Bytes of garbage a useful byte, in value files; `suspected_bytes` of what tables point to count
// as garbage; `coming_bytes` are yet to be flushed.
double garbage_share(const Version& version, std::uint64_t suspected_bytes,
                     std::uint64_t coming_bytes = 0);

// Bytes of all groups, as they lie in value files.
std::uint64_t item_bytes_of_groups(const Version& version);

// A table of groups of which about so much is dead. Views into a version.
struct DeadTable {
  double dead_share = 0;
  NamespaceId id = 0;
  const Run* run = nullptr;
  const TableMetadata* table = nullptr;
};

class GarbageEstimate {
 public:
  explicit GarbageEstimate(const CompactorContext& context) : context_(context) {}

  // Estimates for this version from now on.
  void follow(const Version& version);
  // `after` is the version with the merge.
  void note_merge(const FinishedMerge& merge, const Version& after);
  // Notes tables of which nothing is dead.
  void note_clean(std::span<const TableMetadata> tables);

  // Tables that wait to be sampled, one at a time; `idle`: however little is found.
  bool has_samples() const { return !to_sample_.empty(); }
  Status take_sample(const Version& version, bool idle);
  // All tables are to be sampled, but for those of which nothing was written since.
  void sample_all(const Version& version) { list_samples(version, 0); }
  void drop_samples() { to_sample_.clear(); }
  // Looks for keys of the newest table of level 0 in older runs, if it is new and its turn. False:
  // there was nothing to do.
  Result<bool> look_at_growth(const Version& version);

  // Bytes of garbage a useful byte, known or suspected.
  double share(const Version& version) const { return garbage_share(version, suspected_bytes_); }
  // The deadest first.
  std::vector<DeadTable> dead_tables(const Version& version, double share_min) const;

  // The share when the lane last looked and nothing of it was worth cleaning; 0 if something was.
  void note_idle_share(double share) { idle_share_ = share; }

  // From any thread, from here on. What samples say is dead in groups, and what will be in single
  // values.
  std::uint64_t suspected_bytes() const { return suspected_bytes_.load(); }
  double idle_share() const { return idle_share_.load(); }
  // How much more of it there is with each byte that flushes write.
  double dying_share() const { return dying_share_.load(); }
  // How much garbage a useful byte may be there beyond what a store may hold that does not grow.
  double grace() const;

 private:
  std::uint64_t suspect_singles(const Version& version);
  void note_singles(const MergePlan& plan, const MergeCounters& counters);
  void pass_on_rests(const FinishedMerge& merge);
  void list_samples(const Version& version, std::uint64_t age_bytes_min);

  const CompactorContext& context_;
  GarbageLedger ledger_;
  std::uint64_t suspected_singles_bytes_ = 0;
  double superseding_share_ = 0;       // by values of smaller runs, of older ones
  std::deque<FileNumber> to_sample_;   // tables that may hold much that is dead
  std::size_t fruitless_samples_ = 0;  // in a row
  std::size_t rounds_to_skip_ = 0;     // of sampling, since so little was found
  std::size_t skipped_rounds_ = 0;
  FileNumber growth_seen_ = 0;           // the newest table whose keys were looked for
  std::uint64_t growth_seen_bytes_ = 0;  // what flushes had written then
  SeededRandom random_{1};

  // Written by the lane.
  std::atomic<std::uint64_t> suspected_bytes_{0};
  std::atomic<double> dying_share_{0};
  std::atomic<double> idle_share_{0};
  std::atomic<double> replacing_share_{0};  // of what flushes write
};

// From so many bytes of garbage a useful byte on it is cleaned, and relocations have no budget.
inline constexpr double kGarbageMin = 0.1;
// A slice or a range takes one part in so many of the store.
inline constexpr std::uint64_t kSlicePart = 32;
// A slice's size: that part of the store, but enough that a slice of so many runs pays its syncs.
std::uint64_t slice_bytes(const Options& options, const Version& version, std::size_t runs,
                          std::uint64_t part);

// Runs that are alike in size become one: their records are sunk, or what of them overlaps is
// relocated, slice by slice. A *window* is a set of such runs of one namespace and one life class;
// a survey of its records tells what of it overlaps, and that decides.
//
// A slice is a merge of its own, so that what it read is free before the next one writes. If the
// process ends in between, what was relocated is a run like others, and the rest is surveyed anew.
// Owned by the lane, but for note_scan().
class WindowSource final : public WorkSource {
 public:
  WindowSource(const CompactorContext& context, const GarbageEstimate& garbage)
      : context_(context), garbage_(garbage) {}

  // Another scan begins, in any thread. True: scans have opened so many runs that merging them is
  // worth it; said once. Costs next to nothing.
  bool note_scan() {
    if (scan_runs() < scan_runs_wanted_.load(std::memory_order_relaxed)) return false;
    scan_runs_wanted_.store(UINT64_MAX, std::memory_order_relaxed);
    return true;
  }

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;
  void committed(const FinishedMerge& merge, bool own) override;
  void discarded() override { surveying_.reset(); }
  void interrupted(const Status& failure) override;

  bool is_slicing() const { return slicing_.has_value(); }
  // The rest of its runs is looked at anew.
  void end_slices() { slicing_.reset(); }

 private:
  // A relocation slice by slice: what its next slice goes on with.
  struct Slicing {
    NamespaceId namespace_id = 0;
    std::set<FileNumber> runs;
    std::uint64_t slice_bytes = 0;
    FileNumber output_run = 0;  // 0: the first slice makes it
    std::uint8_t output_level = 0;
  };
  struct Surveying {
    std::shared_ptr<const Version> version;  // whose files it reads
    std::vector<FileNumber> runs;
    std::unique_ptr<Survey> survey;
  };
  using Overlaps = std::map<std::vector<FileNumber>, Overlap>;  // by runs

  Result<Offer> go_on_surveying();
  Result<Offer> pick_window(const LaneView& view);
  Overlaps::const_iterator find_surveyed(const Window& window) const;
  Offer begin_slices(const Version& version, MergePlan plan, bool is_scanned);
  Offer next_slice(const Version& version);
  std::uint64_t budget_bytes() const;
  std::uint64_t scan_runs() const {
    return context_.tables.counters().more_runs.load(std::memory_order_relaxed);
  }

  const CompactorContext& context_;
  const GarbageEstimate& garbage_;
  std::optional<Surveying> surveying_;
  Overlaps overlaps_;  // what surveys said of windows
  std::optional<Slicing> slicing_;
  std::uint64_t relocated_bytes_ = 0;                        // that counts against the budget
  std::uint64_t scan_runs_spent_ = 0;                        // of scan_runs(), on relocations
  std::atomic<std::uint64_t> scan_runs_wanted_{UINT64_MAX};  // until there is one for them
};

// ArrivalSource sorts in what flushes bring: it merges level 0 into the trees of its namespaces. It
// also merges the records of single values, so that what they supersede is known. Owned by the
// lane.
class ArrivalSource final : public WorkSource {
 public:
  explicit ArrivalSource(GarbageEstimate& garbage) : garbage_(garbage) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;

 private:
  GarbageEstimate& garbage_;
};

// GarbageSource frees bytes that nobody can read any more: it empties the emptiest value files,
// samples tables and cleans the deadest. It does first what frees a byte for the least writing; the
// more garbage there is, the more may be written for it. Owned by the lane.
class GarbageSource final : public WorkSource {
 public:
  GarbageSource(GarbageEstimate& garbage, const WindowSource& windows)
      : garbage_(garbage), windows_(windows) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;
  void committed(const FinishedMerge& merge, bool own) override;
  void interrupted(const Status&) override { garbage_.drop_samples(); }

  // Writes rest: all tables are sampled once more, and little that is dead makes cleaning worth it.
  void settle(const Version& version);

 private:
  EvacuationLimits evacuation_limits(const Version& version) const;
  std::optional<MergePlan> pick_cleaning(const LaneView& view);

  GarbageEstimate& garbage_;
  const WindowSource& windows_;
  bool settles_ = false;
};

// How much of a table must be dead to be cleaned, at so much garbage; infinity: no table is.
double cleaned_share_min(double garbage);

// RangeSource frees what updates of small entries supersede, range by range: it merges all runs of
// a tree between two keys, then between the next two, in a circle. Cleaning would ask for each
// entry whether something newer has its key; where entries are small, that takes longer than all
// else. Owned by the lane.
class RangeSource final : public WorkSource {
 public:
  RangeSource(const CompactorContext& context, GarbageEstimate& garbage, WindowSource& windows)
      : context_(context), garbage_(garbage), windows_(windows) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;
  void committed(const FinishedMerge& merge, bool own) override;

 private:
  std::optional<MergePlan> pick_range(const Version& version, const DeadTable& deadest);

  const CompactorContext& context_;
  GarbageEstimate& garbage_;
  WindowSource& windows_;
  // Where the last merge of a range ended, in its namespace and life class.
  std::map<std::pair<NamespaceId, LifeClass>, Bytes> range_ends_;
};

// SettlingSource does what is worth it only once writes rest. So a store that nobody writes to
// holds little that is dead, and then comes to rest itself. Owned by the lane.
class SettlingSource final : public WorkSource {
 public:
  explicit SettlingSource(GarbageSource& garbage) : garbage_(garbage) {}

  Urgency urgency() override { return Urgency::Useful; }
  Result<Offer> next(const LaneView& view) override;

 private:
  Offer settle(const Version& version, FileNumber newest);

  GarbageSource& garbage_;
  FileNumber settled_up_to_ = 0;  // the newest table when all was settled
};

}  // namespace edgecase::engine
