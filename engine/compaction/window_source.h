// Runs that are alike in size become one: their records are sunk, or what of them overlaps is
// relocated, slice by slice. A *window* is a set of such runs of one namespace and one life class;
// a survey of its records tells what of it overlaps, and that decides.
//
// A slice is a merge of its own, so that what it read is free before the next one writes. If the
// process ends in between, what was relocated is a run like others, and the rest is surveyed anew.
// Owned by the lane, but for note_scan().
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
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

}  // namespace edgecase::engine
