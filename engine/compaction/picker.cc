#include "compaction/merge_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace edgecase::engine {

Result<bool> Survey::step(std::uint64_t turns) {
  for (; merge_.valid() && turns > 0; --turns) {
    const UMetaRecord& record = merge_.top().record();
    std::erase_if(open_, [&](const Open& open) { return ByteView(open.last) < record.first; });
    const bool overlaps = !open_.empty();
    if (overlaps) {
      overlap_.overlapping_bytes += record.pointer.size_bytes;
      for (Open& open : open_) {
        if (!open.counted) overlap_.overlapping_bytes += open.bytes;
        open.counted = true;
      }
    }
    open_.push_back({Bytes(record.last), record.pointer.size_bytes, overlaps});
    overlap_.depth = std::max(overlap_.depth, open_.size());
    ++overlap_.items;
    overlap_.item_bytes += record.pointer.size_bytes;
    merge_.top().next_record();
    merge_.settle();
  }
  EC_TRY(merge_.status());
  return !merge_.valid();
}

namespace {

std::uint8_t level_below(std::uint8_t level) {
  return std::min<std::uint8_t>(static_cast<std::uint8_t>(level + 1), kLevelMax);
}

std::vector<const Run*> runs_by_size(const Tree& tree, TableKind kind) {
  std::vector<const Run*> runs;
  for (const Run& run : tree) {
    if (run.kind == kind) runs.push_back(&run);
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run* a, const Run* b) { return a->item_bytes < b->item_bytes; });
  return runs;
}

void add_run(MergePlan& plan, const Run& run) {
  auto& inputs = run.kind == TableKind::Groups ? plan.groups : plan.singles;
  inputs.push_back(run.tables);
  plan.output_level = std::max(plan.output_level, level_below(run.level));
}

// Less garbage in a file is not worth a merge: head, index and tail of a small one.
constexpr std::uint64_t kFileOverheadBytes = 4096;

// How many bytes may be relocated for each run that a scan had to open beyond the first: about what
// opening it takes of the processor, a few times over.
constexpr std::uint64_t kBytesPerScanRun = 16u << 10;

// A file in which less lives is emptied whatever the garbage is in all.
constexpr double kNearlyEmptyShare = 0.9;

// What is dead of larger entries is looked for one by one, and what lives is left where it is: that
// takes less of the drive than to write all of a range again, and more of the processor.
constexpr std::uint64_t kRangeEntryBytesMax = 512;

// A range ends where a table does, or at so many times what it should be.
constexpr std::uint64_t kRangeTables = 2;
constexpr std::uint64_t kRangeGrowth = 2;

bool points_into(const TablePointer& table, const std::set<FileNumber>& files) {
  return std::any_of(table->value_files.begin(), table->value_files.end(),
                     [&](const ValueFileUse& use) { return files.contains(use.file_number); });
}

// `runs` by size.
void add_windows(std::span<const Run* const> runs, std::size_t runs_min, const Window& empty,
                 std::vector<Window>& windows) {
  for (std::size_t begin = 0; begin + runs_min <= runs.size();) {
    Window window = empty;
    std::size_t end = begin;
    for (; end < runs.size() && end - begin < kWindowMax; ++end) {
      if (end > begin && runs[end]->item_bytes > kSimilarSize * window.item_bytes) break;
      window.item_bytes += runs[end]->item_bytes;
      window.runs.push_back(runs[end]->number);
    }
    begin = end;
    if (window.runs.size() < runs_min) continue;
    std::sort(window.runs.begin(), window.runs.end());
    windows.push_back(std::move(window));
  }
}

// The tables of one run that point into the first of `files`, and with it all others of them that
// the run points into, up to a bound. Nothing when level 0 points there: it is merged soon.
std::optional<MergePlan> plan_evacuation(const Version& version,
                                         std::span<const FileNumber> files) {
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  plan.evacuated.insert(files.front());
  const NamespaceId id = version.value_files.at(files.front()).namespace_id;
  const auto in_level0 = [&](const TablePointer& table) {
    return points_into(table, plan.evacuated);
  };
  const auto tree = version.trees.find(id);
  if (tree == version.trees.end() ||
      std::any_of(version.level0.begin(), version.level0.end(), in_level0))
    return std::nullopt;
  const auto run =
      std::find_if(tree->second.begin(), tree->second.end(), [&](const Run& candidate) {
        return std::any_of(candidate.tables.begin(), candidate.tables.end(), in_level0);
      });
  if (run == tree->second.end()) return std::nullopt;
  const std::uint64_t moved_max =
      std::clamp(version.value_bytes() / kMovedPart, kMovedBytesMin, kMovedBytesMax);
  std::uint64_t moved = version.live_bytes.at(files.front());
  for (const FileNumber file : files.subspan(1)) {
    const bool used = std::any_of(run->tables.begin(), run->tables.end(),
                                  [&](const auto& table) { return points_into(table, {file}); });
    if (!used || moved >= moved_max) continue;
    moved += version.live_bytes.at(file);
    plan.evacuated.insert(file);
  }
  MergeInput input;
  std::copy_if(run->tables.begin(), run->tables.end(), std::back_inserter(input),
               [&](const TablePointer& table) { return points_into(table, plan.evacuated); });
  plan.output_level = run->level;
  plan.output_run = run->number;
  (run->kind == TableKind::Groups ? plan.groups : plan.singles).push_back(std::move(input));
  plan.set_surroundings(version);
  return plan;
}

}  // namespace

std::optional<MergePlan> pick_level0(const Version& version, std::size_t tables_max) {
  MergePlan plan;
  const auto add_oldest = [&](TableKind kind, std::vector<MergeInput>& inputs) {
    for (auto at = version.level0.rbegin(); at != version.level0.rend(); ++at) {
      if ((*at)->kind == kind && inputs.size() < kLevel0MergeMax) inputs.push_back({*at});
    }
  };
  add_oldest(TableKind::Groups, plan.groups);
  add_oldest(TableKind::Singles, plan.singles);
  // A flush may have written several.
  std::map<LifeClass, std::size_t> alike;
  std::size_t groups = 0;
  for (const MergeInput& input : plan.groups)
    groups = std::max(groups, ++alike[input.front()->life]);
  std::uint64_t waiting = 0;
  for (const MergeInput& input : plan.singles) waiting += input.front()->item_bytes();
  std::uint64_t singles = 0;
  for (const TablePointer& table : version.tables)
    if (table->kind == TableKind::Singles) singles += table->item_bytes();
  const bool hides_much = !plan.singles.empty() && waiting >= singles / kSinglesShare;
  if (!hides_much && std::max(groups, plan.singles.size()) < tables_max) return std::nullopt;
  plan.set_surroundings(version);
  return plan;
}

bool is_in_pieces(const Version& version, const MergePlan& level0) {
  std::uint64_t pieces = 0, entries = 0;
  std::set<NamespaceId> namespaces;
  for (const MergeInput& input : level0.groups) {
    namespaces.clear();
    for (const TablePointer& table : input) {
      entries += table->entry_count;
      for (const ValueFileUse& use : table->value_files)
        namespaces.insert(version.value_files.at(use.file_number).namespace_id);
    }
    pieces += namespaces.size();
  }
  const std::size_t tables = level0.groups.size();
  return pieces >= 2 * tables && level0.item_bytes() < pieces * kLevel0PieceBytesMin &&
         entries < pieces * kLevel0PieceEntriesMin &&
         std::all_of(level0.groups.begin(), level0.groups.end(), [&](const MergeInput& input) {
           return input.front()->life == level0.groups.front().front()->life;
         });
}

std::optional<MergePlan> pick_singles(const Version& version, std::size_t runs_min,
                                      std::uint64_t share) {
  for (const auto& [id, tree] : version.trees) {
    const std::vector<const Run*> runs = runs_by_size(tree, TableKind::Singles);
    if (runs.size() < runs_min) continue;
    std::uint64_t smaller = 0;
    std::size_t count = 1;
    for (; count < runs.size(); ++count) {
      smaller += runs[count - 1]->item_bytes;
      if (runs[count]->item_bytes > share * smaller) break;
    }
    if (count < runs_min) continue;
    MergePlan plan;
    for (std::size_t i = 0; i < count; ++i) add_run(plan, *runs[i]);
    plan.set_surroundings(version);
    return plan;
  }
  return std::nullopt;
}

std::vector<Window> find_windows(const Version& version, std::size_t runs_min) {
  std::vector<Window> windows;
  for (const auto& [id, tree] : version.trees) {
    std::map<LifeClass, std::vector<const Run*>> alike;
    std::size_t count = 0;
    for (const Run* run : runs_by_size(tree, TableKind::Groups)) {
      alike[run->life].push_back(run);
      ++count;
    }
    Window empty;
    empty.namespace_id = id;
    empty.runs_in_tree = count;
    for (const auto& [life, runs] : alike) add_windows(runs, runs_min, empty, windows);
  }
  return windows;
}

MergePlan plan_window(const Version& version, const Window& window, MergeMode mode) {
  MergePlan plan;
  plan.mode = mode;
  const auto tree = version.trees.find(window.namespace_id);
  if (tree == version.trees.end()) return plan;
  for (const Run& run : tree->second) {
    if (std::binary_search(window.runs.begin(), window.runs.end(), run.number)) add_run(plan, run);
  }
  plan.set_surroundings(version);
  return plan;
}

std::uint64_t scan_runs_for(const Overlap& overlap) {
  return overlap.overlapping_bytes / kBytesPerScanRun + 1;
}

WindowUse use_of(const Window& window, const Overlap& overlap, const WindowLimits& limits) {
  const std::size_t runs = window.runs.size();
  if (overlap.depth * 2 <= runs)
    return runs >= kWindowMinRecords ? WindowUse::Sink : WindowUse::Nothing;
  if (overlap.depth <= 1) return WindowUse::Nothing;
  if (runs >= kWindowMinScans && limits.scan_runs >= scan_runs_for(overlap))
    return WindowUse::RelocateForScans;
  const bool wanted = runs >= kWindowMinLoad && overlap.overlapping_bytes <= limits.budget_bytes;
  return limits.idle || wanted || window.runs_in_tree >= kRunsMax ? WindowUse::Relocate
                                                                  : WindowUse::Wait;
}

bool may_be_used(const Window& window, const Overlap& least, const WindowLimits& limits) {
  const std::size_t runs = window.runs.size();
  if (limits.idle || window.runs_in_tree >= kRunsMax) return true;
  if (runs < kWindowMinRecords) return false;
  return least.depth * 2 <= runs || use_of(window, least, limits) != WindowUse::Wait;
}

std::optional<MergePlan> pick_evacuation(const Version& version, const EvacuationLimits& limits) {
  std::uint64_t total = 0;
  std::uint64_t garbage = 0;
  std::vector<std::pair<double, FileNumber>> emptiest;
  for (const auto& [number, file] : version.value_files) {
    const auto live = version.live_bytes.find(number);
    const std::uint64_t live_bytes = live != version.live_bytes.end() ? live->second : 0;
    const std::uint64_t dead = file.size_bytes - std::min(file.size_bytes, live_bytes);
    total += file.size_bytes;
    garbage += dead;
    const double share = static_cast<double>(dead) / static_cast<double>(file.size_bytes);
    if (limits.among != nullptr && !limits.among->contains(number)) continue;
    // Head and tail are a good part of a small file.
    if (share >= limits.file_share && dead >= kFileOverheadBytes)
      emptiest.push_back({share, number});
  }
  std::sort(emptiest.rbegin(), emptiest.rend());
  if (static_cast<double>(garbage) < limits.garbage_share * static_cast<double>(total))
    std::erase_if(emptiest, [](const auto& file) { return file.first < kNearlyEmptyShare; });
  std::vector<FileNumber> files;
  for (const auto& [share, number] : emptiest) files.push_back(number);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (auto plan = plan_evacuation(version, std::span(files).subspan(i))) return plan;
  }
  return std::nullopt;
}

std::optional<MergePlan> pick_emptying(const Version& version, const std::set<FileNumber>& files) {
  // First into the trees, where each namespace is by itself.
  const bool in_level0 =
      std::any_of(version.level0.begin(), version.level0.end(),
                  [&](const TablePointer& table) { return points_into(table, files); });
  if (in_level0) return pick_level0(version, 1);
  std::vector<FileNumber> used;
  for (const FileNumber number : files) {
    const auto live = version.live_bytes.find(number);
    if (live != version.live_bytes.end() && live->second > 0) used.push_back(number);
  }
  return used.empty() ? std::nullopt : plan_evacuation(version, used);
}

MergePlan plan_cleaning(const Version& version, NamespaceId id,
                        const std::set<FileNumber>& chosen) {
  MergePlan plan;
  plan.mode = MergeMode::Clean;
  const auto tree = version.trees.find(id);
  if (tree == version.trees.end()) return plan;
  for (const Run& run : tree->second) {
    MergeInput input;
    std::copy_if(run.tables.begin(), run.tables.end(), std::back_inserter(input),
                 [&](const TablePointer& table) { return chosen.contains(table->number); });
    if (input.empty()) continue;
    plan.output_run = plan.groups.empty() ? run.number : 0;
    plan.output_level =
        std::max(plan.output_level, plan.groups.empty() ? run.level : level_below(run.level));
    plan.groups.push_back(std::move(input));
  }
  // What is carried would keep whole files for little. Those that others use as well stay.
  std::map<FileNumber, std::uint64_t> used;
  for (const MergeInput& input : plan.groups)
    for (const TablePointer& table : input)
      for (const ValueFileUse& use : table->value_files) used[use.file_number] += use.bytes;
  for (const auto& [number, bytes] : used)
    if (bytes >= version.live_bytes.at(number)) plan.evacuated.insert(number);
  plan.set_surroundings(version);
  return plan;
}

// Each run of a tree with very many would take memory at once.
bool is_merged_by_range(const Tree& tree, const Run& run) {
  if (tree.size() > kRunsMax) return false;
  std::uint64_t entries = 0;
  for (const TablePointer& table : run.tables) entries += table->entry_count;
  return run.item_bytes <= kRangeEntryBytesMax * entries;
}

MergePlan plan_range(const Version& version, const Run& into, ByteView from,
                     std::uint64_t slice_bytes) {
  const std::vector<TablePointer>& tables = into.tables;
  auto at = std::find_if(tables.begin(), tables.end(), [&](const TablePointer& table) {
    return ByteView(table->smallest) > from;
  });
  if (at == tables.end()) at = tables.begin();
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  plan.output_level = into.level;
  plan.output_run = into.number;
  plan.table_item_bytes = std::min(kTableItemBytesMax, slice_bytes / kRangeTables);
  // What comes before its first table, and behind its last, goes with these.
  if (at != tables.begin()) plan.lower = (*at)->smallest;
  std::uint64_t bytes = 0;
  for (; at != tables.end() && bytes < slice_bytes; ++at) bytes += (*at)->item_bytes();
  if (at != tables.end()) plan.upper = (*at)->smallest;
  plan.slice_bytes = plan.has_range() ? kRangeGrowth * slice_bytes : slice_bytes;
  for (const Run& run : version.trees.at(tables.front()->namespace_id)) {
    if (run.kind != TableKind::Groups || run.life != into.life) continue;
    MergeInput input;
    std::copy_if(run.tables.begin(), run.tables.end(), std::back_inserter(input),
                 [&](const TablePointer& table) {
                   return table->largest >= plan.lower &&
                          (plan.upper.empty() || table->smallest < plan.upper);
                 });
    if (!input.empty()) plan.groups.push_back(std::move(input));
  }
  plan.set_surroundings(version);
  return plan;
}

std::optional<MergePlan> plan_everything(const Version& version, NamespaceId id, LifeClass life,
                                         ByteView lower, ByteView upper) {
  const auto tree = version.trees.find(id);
  if (tree == version.trees.end()) return std::nullopt;
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  std::size_t runs = 0;
  std::uint64_t deletes = 0;
  for (const Run& run : tree->second) {
    if (run.life != life) continue;
    MergeInput input;
    for (const TablePointer& table : run.tables) {
      if (ByteView(table->largest) < lower ||
          (!upper.empty() && ByteView(table->smallest) >= upper))
        continue;
      input.push_back(table);
      deletes += table->delete_count;
    }
    if (input.empty()) continue;
    ++runs;
    plan.output_level = std::max(plan.output_level, level_below(run.level));
    (run.kind == TableKind::Groups ? plan.groups : plan.singles).push_back(std::move(input));
  }
  plan.set_surroundings(version);
  if (plan.groups.size() > 1 || plan.singles.size() > 1) return plan;
  // One run of each kind: only deletes, and what they hide in the other kind, may be left.
  if (deletes == 0 || runs == 0) return std::nullopt;
  return plan;
}

}  // namespace edgecase::engine
