// What merges drop for other reasons than a newer entry: what is of a dropped namespace, and what a
// range delete covers.
//
// Entries of a group may answer with the largest sequence of the group. That does no harm: a flush
// leaves out what range deletes of its own memtable cover, so within one's range all that is left
// of that flush is newer, all of earlier ones older; and a merge drops what is covered before it
// gives older and newer entries one sequence.
#pragma once

#include "compaction/merge_plan.h"
#include "version/version_set.h"

namespace edgecase::engine {

class EngineDropRule final : public DropRule {
 public:
  // `versions` outlives it.
  explicit EngineDropRule(const VersionSet& versions) : versions_(versions) {}

  Verdict judge_item(const UMetaRecord& record) const override;
  bool drops_entry(ByteView full_key, SequenceNumber sequence) const override;

 private:
  const VersionSet& versions_;
};

}  // namespace edgecase::engine
