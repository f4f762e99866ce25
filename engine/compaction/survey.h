// Survey finds out how much of some runs overlaps. It reads their records alone, in steps, as
// merges do.
#pragma once

#include "compaction/record_merge.h"

namespace edgecase::engine {

struct Overlap {
  std::uint64_t items = 0;
  std::uint64_t item_bytes = 0;
  std::uint64_t overlapping_bytes = 0;  // of items that share their range with another
  std::size_t depth = 0;                // most items over one key
};

class Survey {
 public:
  // `inputs` are runs of groups.
  Survey(TableCache& tables, const std::vector<MergeInput>& inputs) : merge_(tables, inputs) {}

  // Looks at `turns` records; true when all have been seen.
  Result<bool> step(std::uint64_t turns);
  const Overlap& overlap() const { return overlap_; }

 private:
  struct Open {
    Bytes last;
    std::uint64_t bytes = 0;
    bool counted = false;  // as overlapping
  };

  RecordMerge merge_;
  std::vector<Open> open_;  // items that reach to the current key or beyond
  Overlap overlap_;
};

}  // namespace edgecase::engine
