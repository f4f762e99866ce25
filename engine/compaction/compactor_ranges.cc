// What updates of small entries supersede is freed range by range: all runs of a tree are merged
// between two keys, then between the next two, in a circle. engine/README.md, "Compaction".
#include <algorithm>

#include "compaction/compactor.h"

namespace edgecase::engine {
namespace {

// Of larger entries what is dead is looked for one by one and what lives is left where it is: that
// takes less of the drive than to write all of a range again, and more of the processor.
constexpr std::uint64_t kRangeEntryBytesMax = 512;
// From so many bytes of garbage a useful byte on: the longer a range waits, the more of it is dead
// when it is written again. The first where a good part of the drive is free.
constexpr double kRangeGarbageRoomy = 0.3;
constexpr double kRangeGarbage = 0.2;
// Tables of which less is dead, of what is of the deadest, are passed over.
constexpr double kRangeDeadShare = 0.25;
// Until it is merged what lives in it is there twice.
constexpr std::uint64_t kLargestRangePart = 16;
constexpr std::uint64_t kRangeBytesMin = 1u << 20;

}  // namespace

// Of a tree with very many runs each would take memory at once.
bool Compactor::is_merged_by_range(const Tree& tree, const Run& run) {
  if (tree.size() > kRunsMax) return false;
  std::uint64_t entries = 0;
  for (const TablePointer& table : run.tables) entries += table->entry_count;
  return run.item_bytes <= kRangeEntryBytesMax * entries;
}

// Merges the next range of a tree of small entries. `deadest` is the run of the tree with the table
// of which most is dead.
std::optional<MergePlan> Compactor::pick_range(const Version& version, NamespaceId id,
                                               const Run& deadest, double garbage) {
  if (garbage < (context_.host.is_roomy() ? kRangeGarbageRoomy : kRangeGarbage) - garbage_grace())
    return std::nullopt;
  // What is in level 0 does not take part.
  std::uint64_t waiting = 0;
  for (const TablePointer& table : version.level0) waiting += table->item_bytes();
  if (waiting >= version.value_bytes() / kSlicePart) {
    auto sinks = pick_level0(version, 1);
    if (sinks && !is_in_pieces(version, *sinks)) return sinks;
  }
  std::size_t runs = 0;
  const Run* largest = nullptr;
  for (const Run& run : version.trees.at(id)) {
    if (run.kind != TableKind::Groups || run.life != deadest.life) continue;
    ++runs;
    if (largest == nullptr || run.item_bytes > largest->item_bytes) largest = &run;
  }
  double share = 0;
  for (const TablePointer& table : largest->tables)
    share = std::max(share, ledger_.dead_share(table->number));
  const auto is_chosen = [&](const TableMetadata& table) {
    return ledger_.dead_share(table.number) >= kRangeDeadShare * share;
  };
  slicing_.reset();
  std::erase_if(range_ends_,
                [&](const auto& end) { return !version.trees.contains(end.first.first); });
  const std::uint64_t bytes =
      std::min(slice_bytes(version, runs, kSlicePart),
               std::max(version.value_bytes() / kLargestRangePart, kRangeBytesMin));
  return plan_range(version, *largest, range_ends_[{id, deadest.life}], bytes, is_chosen);
}

// `merged` is what came out of it.
void Compactor::note_range(const MergePlan& plan, std::span<const TableMetadata> merged) {
  const TableMetadata& table = *plan.groups.front().front();
  range_ends_[{table.namespace_id, plan.life}] =
      merged.empty() ? plan.upper : merged.back().largest;
}

// What stays in its run in other tables is as dead as it was.
void Compactor::note_rests(const MergeJob& job, const TableOutput& output) {
  const std::span<const TableMetadata> merged = job.merged(output);
  for (const TableMetadata& table : output.tables) {
    if (&table >= merged.data() && &table < merged.data() + merged.size()) continue;
    for (const MergeInput& input : job.plan().groups)
      for (const TablePointer& before : input)
        if (before->run == table.run && before->smallest <= table.smallest &&
            table.largest <= before->largest)
          ledger_.pass_on(before->number, table.number, table.item_bytes());
  }
}

}  // namespace edgecase::engine
