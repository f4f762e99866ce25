// A source of work for the compaction lane (compactor.h). The lane asks its sources in their order:
// how urgent is it, what would you do, what would it free. It carries out the merge that one of
// them hands it, slice by slice, commits it and tells all of them.
//
// Threads: the lane calls all of it, one call at a time; what others may call says so. Sources live
// as long as the compactor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/store_id.h"
#include "compaction/compaction_host.h"
#include "compaction/merge_plan.h"
#include "edgecase/options.h"
#include "file/file_remover.h"
#include "table/table_cache.h"
#include "table/table_writer.h"
#include "version/version_set.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
