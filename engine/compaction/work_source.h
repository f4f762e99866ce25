// The compaction lane (compactor.h) works with these: sources of work and their turns, the host
// that it asks for all else, the files of a merge, and their removal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "compaction/merge_plan.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
#include "expiry/retention_rules.h"
#include "feed/raise_limits.h"
#include "file/file_remover.h"
#include "table/table_cache.h"
#include "table/table_writer.h"
#include "version/version.h"
#include "version/version_set.h"

namespace edgecase::engine {

// CompactionHost is what compaction needs of the engine around it. Through this one interface it
// knows nothing of logs, memtables and drives that come and go. The engine implements it
// (core/compaction_door.h); tests do so with a few lines. It outlives the compactor.
//
// Threads: the compaction lane calls all of it; others may come to schedule() and is_roomy(). No
// lock of compaction is held during a call.
class CompactionHost {
 public:
  virtual ~CompactionHost() = default;

  // Queues a task on the compaction lane, not before the delay has passed. No task runs once the
  // compactor is gone.
  virtual void schedule(std::int64_t delay_ns, std::function<void()> task) = 0;

  // An edit was applied: readers see the current version from now on.
  virtual void publish() = 0;
  // Bytes of what has expired or was erased left the current version. Readers of an older one hold
  // them back; they are told.
  virtual void revoke() = 0;
  // A merge failed; or, Ok, merges succeed again.
  virtual void report(const Status& health) = 0;

  // Bytes of writes so far, and of the tables that flushes made of them.
  virtual std::uint64_t user_bytes() const = 0;
  virtual std::uint64_t flushed_bytes() const = 0;

  // Ok when both drives answer and are the store's: what cannot be read now is damaged, then.
  virtual Status check_drives() = 0;
  // Whether the values drive has room for garbage that is not cleaned yet.
  virtual bool is_roomy() const = 0;
  // A drive is full: whether there is room now that was kept for this.
  virtual bool release_reserve() = 0;
  // Files of which something that lives cannot be read.
  virtual std::set<FileNumber> lost_files() = 0;
  // A merge of these tables failed: whether more such files are found among them and what they
  // point to.
  virtual bool look_for_damage(const std::vector<TablePointer>& tables) = 0;

  // The rules of retention as they are now; empty when there are none.
  virtual ExpiryView expiry() = 0;
  // How far entries may rise that are written again.
  virtual RaiseLimits raise_limits() = 0;
  // Makes durable what time expiry has reached, and takes what has expired out of the log. False:
  // to be called again soon.
  virtual Result<bool> clear_expired_log() = 0;
  // No table and no value file holds anything of what was erased up to this sequence: clears the
  // rest. False: somebody holds on to it, or a flush must come first; to be called again.
  virtual Result<bool> finish_erasure(SequenceNumber through) = 0;
};

// What merges that make way for others may lose, besides a part of all that was ever written: a
// drive writes as much again within a few seconds.
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
  std::uint64_t discarded_bytes_min = kDiscardedBytesMin;

  bool is_exact() const { return options.expiry == ExpiryMode::Exact; }
};

enum class Urgency : unsigned char {
  None,
  Useful,   // in the order of the sources
  Due,      // rules and users want it: such sources take turns
  Awaited,  // somebody waits for it, and it is done even while merges fail
};

// What the lane sees when it looks for work.
struct LaneView {
  std::shared_ptr<const Version> all;        // the current version
  std::shared_ptr<const Version> mergeable;  // the same without runs that damage touches
  bool idle = false;                         // few writes come
};

// What a source would do next.
struct Offer {
  enum class Kind : unsigned char {
    None,
    Waits,   // until writes rest: it is not worth it before
    Step,    // it is done, without a merge: ask again
    GoesOn,  // the same of a part; it holds files, so the rest comes before the work of others
    Merge,   // `plan` is to be carried out
  };
  Kind kind = Kind::None;
  MergePlan plan = {};

  static Offer none() { return {}; }
  static Offer waits() { return {Kind::Waits, {}}; }
  static Offer step() { return {Kind::Step, {}}; }
  static Offer goes_on() { return {Kind::GoesOn, {}}; }
  static Offer merge(MergePlan plan) {
    return plan.empty() ? none() : Offer{Kind::Merge, std::move(plan)};
  }
};

// A merge whose edit is applied.
struct FinishedMerge {
  const MergePlan& plan;
  const MergeCounters& counters;
  const TableOutput& output;
  // The tables that came out of what was merged, not of what stays in its run.
  std::span<const TableMetadata> merged;
  bool leaves_rest = false;  // it was a slice that ended before its inputs did
  const Version& before;
  const VersionEdit& edit;

  bool is_from_level0() const {
    const auto& inputs = plan.groups.empty() ? plan.singles : plan.groups;
    return inputs.front().front()->level == 0;
  }
};

// A source of work for the compaction lane (compactor.h). The lane asks its sources in their order:
// how urgent is it, what would you do, what would it free. It carries out the merge that one of
// them hands it, slice by slice, commits it and tells all of them.
//
// Threads: the lane calls all of it, one call at a time; what others may call says so. Sources live
// as long as the compactor.
class WorkSource {
 public:
  virtual ~WorkSource() = default;

  // How urgent its most urgent work is. Costs next to nothing.
  virtual Urgency urgency() = 0;
  virtual Result<Offer> next(const LaneView& view) = 0;
  // Whether it would free more than so many bytes that cannot wait: a merge that has written no
  // more makes way for it, and begins again later.
  virtual bool frees_more_than(std::uint64_t written_bytes) {
    static_cast<void>(written_bytes);
    return false;
  }

  // After each merge, `own` or of another source.
  virtual void committed(const FinishedMerge& merge, bool own) {
    static_cast<void>(merge);
    static_cast<void>(own);
  }
  // Its merge, or what it was in the middle of, made way: it is to be done still.
  virtual void discarded() {}
  // What it was doing failed. True: it has seen to that, and the lane goes on as if nothing were.
  virtual bool settles(const Status& failure) {
    static_cast<void>(failure);
    return false;
  }
  // The lane failed, whoever's work it was: it waits, and what was begun begins anew.
  virtual void interrupted(const Status& failure) { static_cast<void>(failure); }

  // When to look whatever else happens; nothing: not before somebody wakes the lane. Then
  // look_again() is called, and the lane runs.
  virtual std::optional<std::int64_t> look_again_in_ns() { return std::nullopt; }
  virtual Status look_again() { return ok(); }
};

// MergeFiles gives merges the files that they write: numbers that nobody else has, and what a
// writer must know of the store. Owned by the lane.
class MergeFiles {
 public:
  explicit MergeFiles(const CompactorContext& context) : context_(context) {}

  // For one merge that makes no more than so many files; valid until the next one.
  Result<TableWriterContext> writer(std::uint64_t files_max) {
    EC_TRY(numbers_.reserve(context_.versions, files_max));
    const auto info_of = [this](NamespaceId id) { return context_.versions.find_namespace(id); };
    TableWriterContext writer{context_.environment.file_system,
                              context_.options,
                              context_.store_id,
                              [this] { return numbers_.take(); },
                              [info_of](NamespaceId id) {
                                const auto info = info_of(id);
                                return info.ok() ? info->options : NamespaceOptions{};
                              },
                              [info_of](NamespaceId id) {
                                const auto info = info_of(id);
                                return info.ok() ? info->name : Bytes();
                              }};
    writer.remover = &context_.remover;
    writer.keys = context_.keys;
    return writer;
  }

 private:
  const CompactorContext& context_;
  FileNumberBlock numbers_;
};

// SourceTurns says in which order the lane (compactor.h) asks its sources, and which of them a
// merge makes way for. Sources whose work is due take turns, from the one behind the last on, so
// that none keeps the others waiting for good. All else goes by the order of the sources. Owned by
// the lane.
class SourceTurns {
 public:
  // The first comes first. The sources, and the list of them, outlive it.
  explicit SourceTurns(std::span<WorkSource* const> order) : order_(order) {}

  // The sources that have work of this urgency, in the order in which they are to be asked.
  std::vector<WorkSource*> of(Urgency urgency) const;
  // It did something that was due: the next turn is of those behind it.
  void note_turn(const WorkSource& source) { last_due_ = &source; }
  // The first in the order has the next turn.
  void begin_anew() { last_due_ = nullptr; }

  // Whether a source before `worker` would free more than its merge has written, and cannot wait.
  bool has_sooner(const WorkSource& worker, std::uint64_t written_bytes) const;
  // Whether somebody waits for a source before `worker`.
  bool has_awaited_before(const WorkSource& worker) const;

 private:
  std::span<WorkSource* const> before(const WorkSource& worker) const;

  const std::span<WorkSource* const> order_;
  const WorkSource* last_due_ = nullptr;  // had the last turn
};

// The current version without the runs that damage touches. What lies in damaged files is lost, not
// dead: nobody may take it for that, or merge what overlaps it as if it were not there. So such
// runs stay as they are until a repair says what is left of them. Owned by the lane.
class Mergeable {
 public:
  explicit Mergeable(CompactionHost& host) : host_(host) {}

  std::shared_ptr<const Version> of(std::shared_ptr<const Version> version);
  // A merge of these tables failed. Whether that was for damage that nobody knew of: the next
  // version is without it, and others go on.
  bool sets_apart(const Status& failure, const std::vector<TablePointer>& tables);

 private:
  CompactionHost& host_;
  // What of() made last, of which version and without which files.
  std::shared_ptr<const Version> made_;
  std::weak_ptr<const Version> made_of_;
  std::set<FileNumber> made_without_;
};

// Removes the files that no version names any more, between the slices of the compaction lane:
// removing may mean overwriting, which takes as long as writing. Owned by the lane.
class Removals {
 public:
  explicit Removals(const CompactorContext& context) : context_(context) {}

  // Hands files that nobody can read any more to the remover.
  void collect();
  // Overwrites and unlinks a slice of what waits for it; `beside_merges`: a small one.
  void step(bool beside_merges);
  bool has_waiting() const { return context_.remover.has_waiting(FileRemover::Urgency::Whenever); }

  // Bytes of what has expired go before anything else is done, since a second is soon over.
  void hurry() { is_hurried_ = true; }
  bool is_hurried() const { return is_hurried_; }
  // Files that resisted, of a drive that was away, once a second.
  void retry();

  // The manifest may hold the edit that named these files, though it failed: they stay until a
  // later edit succeeds.
  void keep(TableOutput output) { kept_.push_back(std::move(output)); }
  bool has_kept() const { return !kept_.empty(); }
  // An edit succeeded: they are nobody's.
  void remove_kept();

 private:
  void remove_output(const TableOutput& output);

  const CompactorContext& context_;
  std::vector<TableOutput> kept_;
  bool is_hurried_ = false;
  std::uint32_t slices_since_step_ = 0;
  std::int64_t retry_not_before_ns_ = 0;
};

}  // namespace edgecase::engine
