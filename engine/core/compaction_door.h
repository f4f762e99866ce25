// Compaction's door into the engine: its host, and the rule by which merges drop entries.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "compaction/merge_plan.h"
#include "compaction/work_source.h"
#include "core/store.h"
#include "edgecase/options.h"
#include "expiry/expiry_clock.h"
#include "expiry/retention_rules.h"
#include "version/version_set.h"

namespace edgecase::engine {

// EngineDropRule tells merges what to drop for other reasons than a newer entry: entries of a
// dropped namespace, those that a range delete covers, and those that have expired.
//
// Entries of a group may answer with the largest sequence of the group. That does no harm: a flush
// leaves out what range deletes of its own memtable cover, so within one's range all that is left
// of that flush is newer, all of earlier ones older; and a merge drops what is covered before it
// gives older and newer entries one sequence.
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

class CommitLeader;
class DriveRoom;
class ErasureRound;
class FlushLane;
class Pacer;
class Retention;
class Scrubber;
class ValuesDrive;

// The side of the engine that compaction sees: hands each question on to the owner that knows.
// Threads: Lane::Compaction; schedule() from any. It has no lock, and waits for whom it asks.
class CompactionDoor final : public CompactionHost {
 public:
  // Owners are asked only once all of them are there.
  struct Owners {
    Scrubber& scrubber;
    ValuesDrive& values;
    DriveRoom& room;
    Pacer& pacer;
    FlushLane& flushes;
    CommitLeader& leader;
    Retention& retention;
    ErasureRound& erasure;
  };
  CompactionDoor(const Store& store, const Owners& owners) : store_(store), owners_(owners) {}

  void schedule(std::int64_t delay_ns, std::function<void()> task) override;
  void publish() override;
  void revoke() override;
  void report(const Status& health) override;
  std::uint64_t user_bytes() const override;
  std::uint64_t flushed_bytes() const override;
  Status check_drives() override;
  bool is_roomy() const override;
  bool release_reserve() override;
  std::set<FileNumber> lost_files() override;
  bool look_for_damage(const std::vector<TablePointer>& tables) override;
  ExpiryView expiry() override;
  RaiseLimits raise_limits() override;
  Result<bool> clear_expired_log() override;
  Result<bool> finish_erasure(SequenceNumber through) override;

 private:
  const Store store_;
  const Owners owners_;
};

}  // namespace edgecase::engine
