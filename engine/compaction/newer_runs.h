// NewerRuns tells whether runs that a merge leaves alone supersede an entry of it. Entries are
// asked for in key order. A run with few entries where the merge works is walked along: between two
// of them nothing is to be asked. Any other is asked through the filter of its items, key by key.
// Owned by one thread.
#pragma once

#include <optional>
#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/record_merge.h"

namespace edgecase::engine {

class NewerRuns {
 public:
  // All by their filters.
  NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs);
  // For all entries of `merged`, which are groups.
  NewerRuns(TableCache& tables, const std::vector<MergeInput>& runs,
            const std::vector<MergeInput>& merged);

  // Whether a newer run supersedes a key at or after the one before.
  Result<bool> supersede(ByteView full_key, SequenceNumber sequence);

 private:
  Result<bool> walked_supersede(ByteView full_key, SequenceNumber sequence);

  std::vector<RecordCursor> asked_;
  std::optional<RecordMerge> walked_;
};

}  // namespace edgecase::engine
