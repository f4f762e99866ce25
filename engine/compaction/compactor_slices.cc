// Relocations range by range: each slice is a merge of its own, so that what it read is free before
// the next one writes. engine/README.md, "Compaction".
#include <algorithm>
#include <utility>

#include "compaction/compactor.h"

namespace edgecase::engine {
namespace {

// Less of the memory limit is not worth the syncs of a slice.
constexpr std::uint64_t kSliceMemoryPart = 16;
// While scans wait for the end of it the tables of what is left are written again less often.
constexpr std::uint64_t kScannedSlicePart = 8;
// Of each run that goes in a part of a group is written once more, and a table with what is left:
// both must be little beside it, the more so as long as it is no more than a part of the store
// and the drive has room: until a slice ends what it writes is there twice.
constexpr std::uint64_t kSliceRestsMin = 16;
constexpr std::uint64_t kSliceRests = 64;
constexpr std::uint64_t kLargeSlicePart = 12;

}  // namespace

std::uint64_t Compactor::slice_bytes(const Version& version, std::size_t runs,
                                     std::uint64_t part) const {
  const Options& options = context_.options;
  const std::uint64_t of_memory = options.memtable_bytes != 0
                                      ? options.memtable_bytes
                                      : options.memory_limit_bytes / kSliceMemoryPart;
  return std::max(
      {of_memory, version.value_bytes() / part, kSliceRestsMin * runs * group_bytes_of(options)});
}

// The plan is of groups alone, of one namespace, of all tables of its runs.
Result<bool> Compactor::start_slices(const Version& version, MergePlan plan, bool is_scanned) {
  if (plan.empty()) return false;
  Slicing slicing;
  slicing.namespace_id = plan.groups.front().front()->namespace_id;
  for (const MergeInput& input : plan.groups) slicing.runs.insert(input.front()->run);
  slicing.slice_bytes =
      slice_bytes(version, plan.groups.size(), is_scanned ? kScannedSlicePart : kSlicePart);
  const std::uint64_t rest_bytes = plan.groups.size() * group_bytes_of(context_.options);
  if (context_.host.is_roomy())
    slicing.slice_bytes =
        std::max(slicing.slice_bytes,
                 std::min(kSliceRests * rest_bytes, version.value_bytes() / kLargeSlicePart));
  slicing.output_level = plan.output_level;
  slicing_ = std::move(slicing);
  return start_slice(version);
}

// False when nothing is left.
Result<bool> Compactor::start_slice(const Version& version) {
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
    return false;
  }
  plan.set_surroundings(version);
  return start(std::move(plan));
}

void Compactor::note_slice(const TableOutput& output, bool leaves_rest) {
  if (!slicing_) return;
  if (!leaves_rest) {
    slicing_.reset();
    return;
  }
  // What stays keeps its runs.
  for (const TableMetadata& table : output.tables)
    if (!slicing_->runs.contains(table.run)) slicing_->output_run = table.run;
}

}  // namespace edgecase::engine
