#include "compaction/newer_runs.h"

#include <algorithm>

namespace edgecase::engine {
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
