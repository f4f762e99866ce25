// EngineDropRule tells merges what to drop for other reasons than a newer entry: entries of a
// dropped namespace, those that a range delete covers, and those that have expired.
//
// Entries of a group may answer with the largest sequence of the group. That does no harm: a flush
// leaves out what range deletes of its own memtable cover, so within one's range all that is left
// of that flush is newer, all of earlier ones older; and a merge drops what is covered before it
// gives older and newer entries one sequence.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "compaction/merge_plan.h"
#include "edgecase/options.h"
#include "expiry/expiry_clock.h"
#include "expiry/expiry_view.h"
#include "version/version_set.h"

namespace edgecase::engine {

class EngineDropRule final : public DropRule {
 public:
  // Both outlive it.
  EngineDropRule(const VersionSet& versions, ExpiryClock& clock, ExpiryMode mode)
      : versions_(versions), clock_(clock), mode_(mode) {}

  void begin_step() override;
  void end_step() override;
  Verdict judge_item(const UMetaRecord& record) override;
  bool drops_entry(ByteView full_key, SequenceNumber sequence) override;

 private:
  bool may_expire(NamespaceId id);
  Verdict judge_expiry(const UMetaRecord& record);

  const VersionSet& versions_;
  ExpiryClock& clock_;
  const ExpiryMode mode_;
  // What belongs to the step.
  std::shared_ptr<const Version> version_;
  ExpiryView expiry_;
  std::optional<NamespaceId> asked_;  // last, whether anything in it may expire
  bool asked_may_expire_ = false;
  std::size_t range_hint_ = 0;
};

}  // namespace edgecase::engine
