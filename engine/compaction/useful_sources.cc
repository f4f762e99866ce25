#include "compaction/useful_sources.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "compaction/due_sources.h"
#include "compaction/merge_plan.h"

namespace edgecase::engine {
namespace {

std::optional<MergePlan> pick_sink(const Version& version) {
  auto plan = pick_level0(version, kLevel0TablesMax);
  if (!plan || !is_in_pieces(version, *plan)) return plan;
  // A small file of each table and namespace would come out.
  if (plan->groups.size() < kLevel0PiecesMin && plan->singles.empty()) return std::nullopt;
  plan->mode = MergeMode::Relocate;
  return plan;
}

}  // namespace

Result<Offer> ArrivalSource::next(const LaneView& view) {
  const Version& version = *view.mergeable;
  // Before the newest tables leave level 0.
  EC_ASSIGN_OR_RETURN(const bool looked, garbage_.look_at_growth(version));
  if (looked) return Offer::step();
  if (auto plan = pick_sink(version)) return Offer::merge(*std::move(plan));
  // A store that grows may hold superseded values a while: there, only runs that are alike.
  auto plan = garbage_.grace() > 0 ? pick_singles(version, kWindowMinRecords, kSimilarSize)
                                   : pick_singles(version, kSingleRunsMax);
  return plan ? Offer::merge(*std::move(plan)) : Offer::none();
}

namespace {

// The more garbage there is, the less of a table need be dead to make cleaning it worth it: from
// `kGarbageMin` (useful_sources.h) bytes a useful one on, and down to the lowest share at
// `kGarbageMax`. The same of value files, from EvacuationLimits on. Where all of a store was
// written at once all of it dies alike: then nothing is worth it until the whole is as dead.
constexpr double kGarbageMax = 0.25;
constexpr double kDeadShareMax = 0.45;
constexpr double kDeadShareMin = 0.2;
constexpr double kQuietDeadShare = 0.1;
// Tables of one cleaning are about as dead.
constexpr double kDeadShareSpread = 0.1;
// One cleaning takes this part of the store: until it is done, what lives is there twice.
constexpr std::uint64_t kCleanedPart = 32;
constexpr std::uint64_t kCleanedBytesMin = 4u << 20;

}  // namespace

double cleaned_share_min(double garbage) {
  if (garbage < kGarbageMin) return std::numeric_limits<double>::infinity();
  const double pressure =
      std::clamp((garbage - kGarbageMin) / (kGarbageMax - kGarbageMin), 0.0, 1.0);
  return kDeadShareMax - pressure * (kDeadShareMax - kDeadShareMin);
}

Result<Offer> GarbageSource::next(const LaneView& view) {
  // What a relocation is about to write again is not worth moving before. Under load it takes
  // longer, and what is dead is freed in between.
  if (view.idle && windows_.is_slicing()) return Offer::none();
  const Version& version = *view.mergeable;
  if (garbage_.has_samples()) {
    EC_TRY(garbage_.take_sample(version, view.idle));
    return Offer::step();
  }
  auto plan = pick_evacuation(version, evacuation_limits(version));
  if (!plan) plan = pick_cleaning(view);
  garbage_.note_idle_share(plan ? 0 : garbage_.share(version));
  return plan ? Offer::merge(*std::move(plan)) : Offer::none();
}

EvacuationLimits GarbageSource::evacuation_limits(const Version& version) const {
  // Shares of all bytes, not of the useful ones.
  constexpr double kUseful = 1 / (1 - EvacuationLimits{}.garbage_share);
  const double grace = garbage_.grace();
  EvacuationLimits limits;
  limits.garbage_share = 1 - 1 / (kUseful + grace);
  const double garbage = garbage_share(version, 0) - grace;
  const double pressure =
      std::clamp((garbage - (kUseful - 1)) / (kGarbageMax - (kUseful - 1)), 0.0, 1.0);
  limits.file_share -= pressure * (limits.file_share - kDeadShareMin);
  return limits;
}

std::optional<MergePlan> GarbageSource::pick_cleaning(const LaneView& view) {
  const Version& version = *view.mergeable;
  const double share_min =
      settles_ ? kQuietDeadShare : cleaned_share_min(garbage_.share(version) - garbage_.grace());
  const std::vector<DeadTable> candidates = garbage_.dead_tables(version, share_min);
  if (candidates.empty()) {
    settles_ = false;
    return std::nullopt;
  }
  // The deadest table, and others of its run; or, where that is small, of small runs.
  const DeadTable& deadest = candidates.front();
  if (!view.idle && is_merged_by_range(version.trees.at(deadest.id), *deadest.run))
    return std::nullopt;
  const std::uint64_t bytes_max =
      std::clamp(item_bytes_of_groups(version) / kCleanedPart, kCleanedBytesMin, kMovedBytesMax);
  const bool small = deadest.run->item_bytes <= bytes_max;
  std::set<FileNumber> chosen;
  std::uint64_t bytes = 0;
  for (const DeadTable& candidate : candidates) {
    const bool fits =
        small ? candidate.run->item_bytes <= bytes_max && candidate.run->life == deadest.run->life
              : candidate.run == deadest.run;
    if (!fits || candidate.id != deadest.id ||
        candidate.dead_share < deadest.dead_share - kDeadShareSpread)
      continue;
    if (!chosen.empty() && bytes + candidate.table->item_bytes() > bytes_max) continue;
    bytes += candidate.table->item_bytes();
    chosen.insert(candidate.table->number);
  }
  return plan_cleaning(version, deadest.id, chosen);
}

void GarbageSource::committed(const FinishedMerge& merge, bool own) {
  if (own && merge.plan.mode == MergeMode::Clean) garbage_.note_clean(merge.merged);
  if (merge.is_from_level0()) settles_ = false;
}

void GarbageSource::settle(const Version& version) {
  garbage_.follow(version);
  garbage_.sample_all(version);
  settles_ = true;
}

namespace {

// From so many bytes of garbage a useful byte on: the longer a range waits, the more of it is dead
// when it is written again. The first where a good part of the drive is free.
constexpr double kRangeGarbageRoomy = 0.3;
constexpr double kRangeGarbage = 0.2;
// Until it is merged what lives in it is there twice.
constexpr std::uint64_t kLargestRangePart = 16;
constexpr std::uint64_t kRangeBytesMin = 1u << 20;

}  // namespace

Result<Offer> RangeSource::next(const LaneView& view) {
  if (view.idle) return Offer::none();
  const Version& version = *view.mergeable;
  const double garbage = garbage_.share(version);
  if (garbage < (context_.host.is_roomy() ? kRangeGarbageRoomy : kRangeGarbage))
    return Offer::none();
  const auto dead = garbage_.dead_tables(version, cleaned_share_min(garbage - garbage_.grace()));
  if (dead.empty() || !is_merged_by_range(version.trees.at(dead.front().id), *dead.front().run))
    return Offer::none();
  auto plan = pick_range(version, dead.front());
  if (!plan) return Offer::none();
  garbage_.note_idle_share(0);
  return Offer::merge(*std::move(plan));
}

std::optional<MergePlan> RangeSource::pick_range(const Version& version, const DeadTable& deadest) {
  // What is in level 0 does not take part.
  std::uint64_t waiting = 0;
  for (const TablePointer& table : version.level0) waiting += table->item_bytes();
  if (waiting >= version.value_bytes() / kSlicePart) {
    auto sinks = pick_level0(version, 1);
    if (sinks && !is_in_pieces(version, *sinks)) return sinks;
  }
  std::size_t runs = 0;
  const Run* largest = nullptr;
  for (const Run& run : version.trees.at(deadest.id)) {
    if (run.kind != TableKind::Groups || run.life != deadest.run->life) continue;
    ++runs;
    if (largest == nullptr || run.item_bytes > largest->item_bytes) largest = &run;
  }
  windows_.end_slices();
  std::erase_if(range_ends_,
                [&](const auto& end) { return !version.trees.contains(end.first.first); });
  const std::uint64_t bytes =
      std::min(slice_bytes(context_.options, version, runs, kSlicePart),
               std::max(version.value_bytes() / kLargestRangePart, kRangeBytesMin));
  return plan_range(version, *largest, range_ends_[{deadest.id, deadest.run->life}], bytes);
}

void RangeSource::committed(const FinishedMerge& merge, bool own) {
  if (!own || merge.is_from_level0()) return;
  // Nothing of what was merged is dead.
  garbage_.note_clean(merge.merged);
  const TableMetadata& table = *merge.plan.groups.front().front();
  range_ends_[{table.namespace_id, merge.plan.life}] =
      merge.merged.empty() ? merge.plan.upper : merge.merged.back().largest;
}

namespace {

// This many range deletes are applied under load, too: writers of others get Busy at
// range_deletes_max().
constexpr std::size_t kRangeDeletesSoon = 256;

}  // namespace

Result<Offer> SettlingSource::next(const LaneView& view) {
  const Version& version = *view.mergeable;
  // What range deletes and newer small values hide would otherwise stay until something else asks
  // for a merge there.
  if (view.idle || version.range_delete_list.size() >= kRangeDeletesSoon) {
    PurgeContext everywhere;
    everywhere.within.push_back({});
    if (auto plan = pick_purge(version, everywhere)) return Offer::merge(*std::move(plan));
  }
  FileNumber newest = 0;
  for (const TablePointer& table : version.tables) newest = std::max(newest, table->number);
  if (!view.idle) return Offer::waits();
  return newest == settled_up_to_ ? Offer::none() : settle(version, newest);
}

// In quiet garbage is worth less of a trigger.
Offer SettlingSource::settle(const Version& version, FileNumber newest) {
  if (auto plan = pick_level0(version, 1)) return Offer::merge(*std::move(plan));
  if (auto plan = pick_singles(version, kWindowMinIdle, kSinglesShareQuiet))
    return Offer::merge(*std::move(plan));
  if (auto plan = pick_evacuation(version, kQuietEvacuation)) return Offer::merge(*std::move(plan));
  settled_up_to_ = newest;
  garbage_.settle(version);
  return Offer::step();
}

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
