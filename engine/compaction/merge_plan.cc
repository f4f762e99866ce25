#include "compaction/merge_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kValueFilesPerMerge = 8;
constexpr std::uint64_t kValueFileBytesMin = 512u << 10;
constexpr std::uint64_t kRestTableBytesMin = 1u << 20;

struct Bounds {
  Bytes smallest;
  Bytes largest;
  SequenceNumber sequence_min = UINT64_MAX;
  SequenceNumber sequence_max = 0;
  std::set<FileNumber> numbers;

  void add(const MergeInput& input) { add(std::vector<MergeInput>{input}); }
  void add(const std::vector<MergeInput>& inputs) {
    for (const MergeInput& input : inputs) {
      for (const TablePointer& table : input) {
        if (numbers.empty() || table->smallest < smallest) smallest = table->smallest;
        if (numbers.empty() || table->largest > largest) largest = table->largest;
        sequence_min = std::min(sequence_min, table->sequence_min);
        sequence_max = std::max(sequence_max, table->sequence_max);
        numbers.insert(table->number);
      }
    }
  }
};

// Runs of groups that are not of `excluded` and may hold something newer within the bounds.
void find_newer_groups(const Version& version, const Bounds& bounds,
                       const std::set<FileNumber>& excluded, std::vector<MergeInput>& found) {
  const auto matters = [&](const TablePointer& table) {
    return table->kind == TableKind::Groups && !excluded.contains(table->number) &&
           table->sequence_max > bounds.sequence_min && table->largest >= bounds.smallest &&
           table->smallest <= bounds.largest;
  };
  for (const TablePointer& table : version.level0) {
    if (matters(table)) found.push_back({table});
  }
  for (const auto& [id, tree] : version.trees) {
    for (const Run& run : tree) {
      MergeInput input;
      std::copy_if(run.tables.begin(), run.tables.end(), std::back_inserter(input), matters);
      if (!input.empty()) found.push_back(std::move(input));
    }
  }
}

LifeClass common_life(const std::vector<MergeInput>& inputs) {
  if (inputs.empty()) return 0;
  const LifeClass life = inputs.front().front()->life;
  const bool common = std::all_of(inputs.begin(), inputs.end(), [&](const MergeInput& input) {
    return input.front()->life == life;
  });
  return common ? life : 0;
}

}  // namespace

void MergePlan::set_surroundings(const Version& version) {
  Bounds bounds;
  bounds.add(singles);
  newer_groups.clear();
  if (!singles.empty()) find_newer_groups(version, bounds, {}, newer_groups);
  bounds.add(groups);
  if (bounds.smallest < lower) bounds.smallest = lower;
  if (!upper.empty() && bounds.largest > upper) bounds.largest = upper;
  if (mode == MergeMode::Clean && singles.empty())
    find_newer_groups(version, bounds, bounds.numbers, newer_groups);
  others.clear();
  barriers.clear();
  bool between = false;
  std::vector<TablePointer> all = version.tables;
  all.insert(all.end(), version.set_apart.begin(), version.set_apart.end());
  for (const TablePointer& table : all) {
    if (bounds.numbers.contains(table->number) || table->largest < bounds.smallest ||
        table->smallest > bounds.largest || (!upper.empty() && table->smallest >= upper))
      continue;
    between = between || (table->sequence_min <= bounds.sequence_max &&
                          table->sequence_max >= bounds.sequence_min);
    others.push_back(table);
    if (output_run != 0 && table->level > 0 && table->run == output_run)
      barriers.push_back(table->smallest);
  }
  std::sort(barriers.begin(), barriers.end());
  purged_sequence = UINT64_MAX;
  rule_epoch = UINT64_MAX;
  for (const auto* inputs : {&groups, &singles}) {
    for (const MergeInput& input : *inputs) {
      for (const TablePointer& table : input) {
        purged_sequence = std::min(purged_sequence, table->purged_sequence);
        rule_epoch = std::min(rule_epoch, table->rule_epoch);
      }
    }
  }
  evacuated_expiry.clear();
  for (const FileNumber number : evacuated) {
    const ValueFileMetadata& file = version.value_files.at(number);
    evacuated_expiry[number] = {file.bucket, file.expiry_min_ns, file.expiry_max_ns,
                                file.time_min_ns, file.time_max_ns};
  }
  life = common_life(groups);
  one_sequence.reset();
  // A large value keeps its own sequence: with some of them here, groups must keep theirs.
  if (!between && singles.empty() && !groups.empty()) one_sequence = bounds.sequence_max;
}

std::uint64_t MergePlan::item_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto* inputs : {&groups, &singles})
    for (const MergeInput& input : *inputs)
      for (const TablePointer& table : input) bytes += table->item_bytes();
  return bytes;
}

std::uint64_t MergePlan::value_file_bytes() const {
  const std::uint64_t bytes = slice_bytes != 0 ? slice_bytes : item_bytes() / kValueFilesPerMerge;
  return std::clamp(bytes, kValueFileBytesMin, kMergedValueFileBytesMax);
}

std::uint64_t MergePlan::rest_table_bytes() const {
  const std::uint64_t runs = std::max<std::uint64_t>(1, groups.size());
  return std::clamp(slice_bytes / runs, kRestTableBytesMin, kTableItemBytesMax);
}

}  // namespace edgecase::engine
