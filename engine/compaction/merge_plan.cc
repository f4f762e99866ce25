#include "compaction/merge_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <tuple>
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

namespace {

// What a key begins with.
template <std::size_t count>
std::array<std::uint64_t, count> words_of(ByteView key) {
  std::array<std::uint64_t, count> words{};
  std::memcpy(words.data(), key.data(), std::min(sizeof words, key.size()));
  if constexpr (std::endian::native == std::endian::little)
    for (std::uint64_t& word : words) word = __builtin_bswap64(word);
  return words;
}

}  // namespace

RecordMerge::RecordMerge(TableCache& tables, const std::vector<MergeInput>& inputs, ByteView from) {
  cursors_.reserve(inputs.size());
  standings_.resize(inputs.size());
  for (const MergeInput& input : inputs) {
    heap_.push_back(cursors_.size());
    cursors_.push_back(tables.records(input, from));
    if (!from.empty()) skip_before(cursors_.back(), from);
    note(heap_.back());
  }
  for (std::size_t at = heap_.size() / 2; at-- > 0;) sift_down(at);
}

// The cursor stands on a record that ends at or after `from`.
void RecordMerge::skip_before(RecordCursor& cursor, ByteView from) {
  if (!cursor.valid() || cursor.key() >= from) return;
  // An error shows when the cursor is noted.
  if (!cursor.open_item().ok()) return;
  while (cursor.is_open() && cursor.key() < from) cursor.next_entry();
  if (cursor.is_open()) ++open_items_;
}

bool RecordMerge::comes_before(std::size_t a, std::size_t b) const {
  const Standing& left = standings_[a];
  const Standing& right = standings_[b];
  if (!left.valid || !right.valid) return left.valid;
  if (left.words != right.words) return left.words < right.words;
  // The longer of two keys that end within the words has zeros where the other ends.
  const bool all_known = std::max(left.key_bytes, right.key_bytes) <= sizeof left.words;
  if (all_known && left.key_bytes != right.key_bytes) return left.key_bytes < right.key_bytes;
  const int order = all_known ? 0 : cursors_[a].key().compare(cursors_[b].key());
  return order != 0 ? order < 0 : !left.is_open && right.is_open;
}

// Compares two that are valid.
bool RecordMerge::is_equal(std::size_t a, std::size_t b) const {
  const Standing& left = standings_[a];
  const Standing& right = standings_[b];
  return left.words == right.words && left.key_bytes == right.key_bytes &&
         (left.key_bytes <= sizeof left.words || cursors_[a].key() == cursors_[b].key());
}

// After it moved.
void RecordMerge::note(std::size_t input) {
  const RecordCursor& cursor = cursors_[input];
  Standing& standing = standings_[input];
  standing.valid = cursor.valid();
  if (!standing.valid) {
    if (status_.ok()) status_ = cursor.status();
    return;
  }
  const ByteView key = cursor.key();
  standing.words = words_of<std::tuple_size_v<decltype(standing.words)>>(key);
  standing.key_bytes = key.size();
  standing.is_open = cursor.is_open();
}

void RecordMerge::sift_down(std::size_t at) {
  for (;;) {
    std::size_t nearest = at;
    for (std::size_t below = 2 * at + 1; below <= 2 * at + 2 && below < heap_.size(); ++below) {
      if (comes_before(heap_[below], heap_[nearest])) nearest = below;
    }
    if (nearest == at) return;
    std::swap(heap_[at], heap_[nearest]);
    at = nearest;
  }
}

bool RecordMerge::second_key(ByteView& key) const {
  bool found = false;
  for (std::size_t at = 1; at < std::min<std::size_t>(heap_.size(), 3); ++at) {
    const RecordCursor& cursor = cursors_[heap_[at]];
    if (!cursor.valid() || (found && cursor.key() >= key)) continue;
    key = cursor.key();
    found = true;
  }
  return found;
}

void RecordMerge::settle() {
  note(heap_.front());
  sift_down(0);
}

const std::vector<std::size_t>& RecordMerge::equals() {
  places_.assign(1, 0);
  equals_.assign(1, heap_.front());
  // Records of one key lie together at the top of the heap.
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::size_t below = 2 * places_[i] + 1;
    for (std::size_t at = below; at < std::min(below + 2, heap_.size()); ++at) {
      if (!standings_[heap_[at]].valid || !is_equal(heap_[at], heap_.front())) continue;
      places_.push_back(at);
      equals_.push_back(heap_[at]);
    }
  }
  return equals_;
}

void RecordMerge::settle_equals() {
  for (const std::size_t input : equals_) note(input);
  // From the lowest up: below each place everything is in order.
  std::sort(places_.begin(), places_.end());
  for (std::size_t i = places_.size(); i-- > 0;) sift_down(places_[i]);
}

namespace {

// A run is walked when it has no more than one entry for so many that are merged.
constexpr std::uint64_t kWalkedShare = 2;
// Walking reads values, which is cheaper than asking filters only where they are small.
constexpr std::uint64_t kWalkedEntryBytesMax = 256;
// Each has an item in memory, and what is read ahead of it.
constexpr std::size_t kWalkedRunsMax = 64;

struct Extent {
  ByteView first;
  ByteView last;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

Extent extent_of(const std::vector<MergeInput>& inputs) {
  Extent extent;
  for (const MergeInput& input : inputs) {
    for (const TablePointer& table : input) {
      if (extent.entries == 0 || ByteView(table->smallest) < extent.first)
        extent.first = table->smallest;
      if (extent.entries == 0 || ByteView(table->largest) > extent.last)
        extent.last = table->largest;
      extent.entries += table->entry_count;
      extent.bytes += table->item_bytes();
    }
  }
  return extent;
}

}  // namespace

NewerRuns::NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs) {
  for (const MergeInput& run : runs) asked_.push_back(tables.records(run));
}

NewerRuns::NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs,
                     const std::vector<MergeInput>& merged) {
  const Extent extent = extent_of(merged);
  const bool is_small = extent.bytes <= extent.entries * kWalkedEntryBytesMax;
  std::vector<MergeInput> walked;
  for (const MergeInput& run : runs) {
    RecordCursor cursor = tables.records(run, extent.first);
    const bool walks = is_small && walked.size() < kWalkedRunsMax &&
                       cursor.entries_up_to(extent.last) <= extent.entries / kWalkedShare;
    if (walks) {
      walked.push_back(run);
    } else {
      asked_.push_back(std::move(cursor));
    }
  }
  if (!walked.empty()) walked_.emplace(tables, walked);
}

Result<bool> NewerRuns::supersede(ByteView full_key, SequenceNumber sequence) {
  if (walked_) {
    EC_ASSIGN_OR_RETURN(const bool superseded, walked_supersede(full_key, sequence));
    if (superseded) return true;
  }
  if (asked_.empty()) return false;
  const SoughtKey key(full_key);
  for (RecordCursor& run : asked_) {
    EC_ASSIGN_OR_RETURN(const bool superseded, run.supersedes(key, sequence));
    if (superseded) return true;
  }
  return false;
}

Result<bool> NewerRuns::walked_supersede(ByteView full_key, SequenceNumber sequence) {
  for (; walked_->valid(); walked_->settle()) {
    RecordCursor& run = walked_->top();
    const int order = run.key().compare(full_key);
    if (order > 0 || (order == 0 && run.is_open())) break;
    if (run.is_open()) {
      run.next_entry();
    } else if (run.record().last < full_key) {
      run.seek_record(full_key);
    } else if (run.open_item().ok() && run.is_destroyed()) {
      run.next_record();
    }
  }
  EC_TRY(walked_->status());
  if (!walked_->valid() || walked_->top().key() != full_key) return false;
  const std::vector<std::size_t>& equals = walked_->equals();
  return std::any_of(equals.begin(), equals.end(), [&](std::size_t run) {
    return walked_->cursor(run).entry().sequence > sequence;
  });
}

}  // namespace edgecase::engine
