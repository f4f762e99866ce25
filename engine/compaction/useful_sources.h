// The sources of work that is useful and not due: what flushes bring is sorted in, runs alike in
// size become one, what is dead goes. compactor.h has their order. Owned by the lane.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compaction/garbage_estimate.h"
#include "compaction/picker.h"

namespace edgecase::engine {

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
