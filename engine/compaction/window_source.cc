#include "compaction/window_source.h"

#include <algorithm>
#include <utility>

namespace edgecase::engine {
namespace {

// Records that a survey looks at in one slice of the lane.
constexpr std::uint64_t kSurveyTurns = 1u << 13;
// This part of the bytes that flushes write may be written once more by relocation under load.
// Bytes as they lie on the drive: a reading takes 25 bytes of keys and values and a byte there, and
// what a relocation costs grows with the latter.
constexpr std::uint64_t kBudgetShare = 4;

// While scans wait for the end of it the tables of what is left are written again less often.
constexpr std::uint64_t kScannedSlicePart = 8;
// A slice writes a part of a group of each run once more, and a table with what is left. Both must
// be little beside it, the more so as long as it is no more than a part of the store and the drive
// has room: until a slice ends what it writes is there twice.
constexpr std::uint64_t kSliceRestsMin = 16;
constexpr std::uint64_t kSliceRests = 64;
constexpr std::uint64_t kLargeSlicePart = 12;

}  // namespace

std::uint64_t slice_bytes(const Options& options, const Version& version, std::size_t runs,
                          std::uint64_t part) {
  return std::max(version.value_bytes() / part, kSliceRestsMin * runs * group_bytes_of(options));
}

Result<Offer> WindowSource::next(const LaneView& view) {
  if (slicing_) {
    Offer slice = next_slice(*view.mergeable);
    if (slice.kind != Offer::Kind::None) return slice;
  }
  return surveying_ ? go_on_surveying() : pick_window(view);
}

Result<Offer> WindowSource::go_on_surveying() {
  EC_ASSIGN_OR_RETURN(const bool done, surveying_->survey->step(kSurveyTurns));
  if (!done) return Offer::goes_on();
  overlaps_[surveying_->runs] = surveying_->survey->overlap();
  surveying_.reset();
  return Offer::step();
}

Result<Offer> WindowSource::pick_window(const LaneView& view) {
  const Version& version = *view.mergeable;
  // Where much is dead, cleaning frees it for less.
  const bool has_garbage = garbage_.share(version) >= kGarbageMin;
  const WindowLimits limits{view.idle, has_garbage ? 0 : budget_bytes(),
                            scan_runs() - scan_runs_spent_};
  std::uint64_t scan_runs_wanted = UINT64_MAX;
  bool waits = false;
  Overlaps known;
  for (Window& window : find_windows(version, kWindowMinIdle)) {
    const auto surveyed = find_surveyed(window);
    const bool exact = surveyed != overlaps_.end() && surveyed->first == window.runs;
    const Overlap overlap = surveyed != overlaps_.end() ? surveyed->second : Overlap{};
    if (!exact && may_be_used(window, overlap, limits)) {
      const MergePlan plan = plan_window(version, window, MergeMode::Sink);
      surveying_ =
          Surveying{view.all, window.runs, std::make_unique<Survey>(context_.tables, plan.groups)};
      return Offer::step();
    }
    if (surveyed != overlaps_.end()) known.insert(*surveyed);
    const WindowUse use = exact ? use_of(window, overlap, limits) : WindowUse::Wait;
    switch (use) {
      case WindowUse::Nothing: break;
      case WindowUse::Sink: return Offer::merge(plan_window(version, window, MergeMode::Sink));
      case WindowUse::Relocate:
        if (!limits.idle) relocated_bytes_ += overlap.overlapping_bytes;
        return begin_slices(version, plan_window(version, window, MergeMode::Relocate), false);
      case WindowUse::RelocateForScans:
        scan_runs_spent_ = scan_runs();  // nothing is saved up for others
        return begin_slices(version, plan_window(version, window, MergeMode::Relocate), true);
      case WindowUse::Wait:
        if (window.runs.size() >= kWindowMinScans)
          scan_runs_wanted = std::min(scan_runs_wanted, scan_runs_spent_ + scan_runs_for(overlap));
        waits = true;
    }
  }
  overlaps_ = std::move(known);  // forgets windows that are no more
  scan_runs_wanted_.store(scan_runs_wanted, std::memory_order_relaxed);
  return waits ? Offer::waits() : Offer::none();
}

// What is known of it, or of the most of its runs: all of them overlap no less. Each new run makes
// another window; while writes come, not each is surveyed.
WindowSource::Overlaps::const_iterator WindowSource::find_surveyed(const Window& window) const {
  auto best = overlaps_.find(window.runs);
  if (best != overlaps_.end()) return best;
  for (auto at = overlaps_.begin(); at != overlaps_.end(); ++at) {
    const bool is_part =
        std::includes(window.runs.begin(), window.runs.end(), at->first.begin(), at->first.end());
    if (is_part && (best == overlaps_.end() || at->first.size() > best->first.size())) best = at;
  }
  return best;
}

std::uint64_t WindowSource::budget_bytes() const {
  const std::uint64_t earned = context_.host.flushed_bytes() / kBudgetShare;
  return earned > relocated_bytes_ ? earned - relocated_bytes_ : 0;
}

// The plan is of groups alone, of one namespace, of all tables of its runs.
Offer WindowSource::begin_slices(const Version& version, MergePlan plan, bool is_scanned) {
  if (plan.empty()) return Offer::none();
  const Options& options = context_.options;
  Slicing slicing;
  slicing.namespace_id = plan.groups.front().front()->namespace_id;
  for (const MergeInput& input : plan.groups) slicing.runs.insert(input.front()->run);
  slicing.slice_bytes = slice_bytes(options, version, plan.groups.size(),
                                    is_scanned ? kScannedSlicePart : kSlicePart);
  const std::uint64_t rest_bytes = plan.groups.size() * group_bytes_of(options);
  if (context_.host.is_roomy())
    slicing.slice_bytes =
        std::max(slicing.slice_bytes,
                 std::min(kSliceRests * rest_bytes, version.value_bytes() / kLargeSlicePart));
  slicing.output_level = plan.output_level;
  slicing_ = std::move(slicing);
  return next_slice(version);
}

// None when nothing is left.
Offer WindowSource::next_slice(const Version& version) {
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  plan.slice_bytes = slicing_->slice_bytes;
  plan.output_run = slicing_->output_run;
  plan.output_level = slicing_->output_level;
  const auto tree = version.trees.find(slicing_->namespace_id);
  if (tree != version.trees.end()) {
    for (const Run& run : tree->second) {
      if (run.number == slicing_->output_run) plan.output_level = run.level;
      if (slicing_->runs.contains(run.number) && run.kind == TableKind::Groups)
        plan.groups.push_back(run.tables);
    }
  }
  if (plan.empty()) {
    slicing_.reset();
    return Offer::none();
  }
  plan.set_surroundings(version);
  return Offer::merge(std::move(plan));
}

void WindowSource::committed(const FinishedMerge& merge, bool own) {
  if (!own || !slicing_) return;
  if (!merge.leaves_rest) return end_slices();
  // What stays keeps its runs.
  for (const TableMetadata& table : merge.output.tables)
    if (!slicing_->runs.contains(table.run)) slicing_->output_run = table.run;
}

void WindowSource::interrupted(const Status&) {
  surveying_.reset();
  end_slices();
}

}  // namespace edgecase::engine
