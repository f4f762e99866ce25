// ErasureDamage keeps damaged files from holding up a round of erasing. Entries that can be read go
// as always, those that cannot go with their file (carving.h). Owned by the lane.
#pragma once

#include <set>
#include <vector>

#include "base/range_deletes.h"
#include "compaction/erasure_look.h"
#include "compaction/merge_files.h"
#include "compaction/removals.h"

namespace edgecase::engine {

// What a round wants to be rid of.
struct ErasureTargets {
  std::vector<RangeDelete> ranges;  // disjoint, in key order
  std::set<FileNumber> to_empty;    // value files that hold much of them
};

ValueFilePlace place_of(const CompactorContext& context, FileNumber number, Placement placement);

class ErasureDamage {
 public:
  ErasureDamage(const CompactorContext& context, MergeFiles& files, Removals& removals)
      : context_(context), files_(files), removals_(removals) {}

  void begin_round() { carved_.clear(); }
  // Damaged tables that concern the round, one at a time and each by itself: first what stands in
  // the way of reading them goes, then they are merged as others are.
  Result<Offer> next(const Version& version, const ErasureTargets& targets);
  // Reads all again that leads to the value file, past the page cache. Whether damage is found that
  // was not known.
  bool finds_damage_at(const Version& version, FileNumber number);
  // Nobody can tell what lies in a value file that does not open, and nothing of it can be read: it
  // goes, and what points into it stays damaged, as of any file that is missing. False: it may open
  // after all, or nothing points into it, and it goes as others do.
  Result<bool> destroy_unreadable(const Version& version, FileNumber number);

 private:
  Result<bool> carve(const Version& version, const TableMetadata& table,
                     const ErasureTargets& targets);

  const CompactorContext& context_;
  MergeFiles& files_;
  Removals& removals_;
  std::set<FileNumber> carved_;  // damaged tables of which all that matters can be read
};

}  // namespace edgecase::engine
