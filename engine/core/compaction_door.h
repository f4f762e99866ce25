// The doors between compaction and the engine: CompactionDoor, by which compaction asks it, with
// the rule by which merges drop entries; and ErasureRound, which leads an erasure through both.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "compaction/compactor.h"
#include "compaction/merge_plan.h"
#include "compaction/work_source.h"
#include "core/commit_leader.h"
#include "core/drives.h"
#include "core/flush_lane.h"
#include "core/store.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
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

// Erasure, from the call to the last byte: ranges that were erased are hidden already; this brings
// them out of memtables and log, has tables and values purged (engine/compaction), and ends with
// the keys and the manifest.
//
// Threads: erase() is called by any and waits there: for a flush, then for the round, for
// Options::erasure_wait_ms at most while somebody holds on to what was erased. finish() is called
// on Lane::Compaction, once no table and no value file holds anything; it waits for the drives
// alone. The mutex is for the pause between two looks.
class ErasureRound {
 public:
  // All outlive it.
  ErasureRound(const Store& store, DriveRoom& room, Compactor& compactor, FlushLane& flushes,
               CommitLeader& leader)
      : store_(store), room_(room), compactor_(compactor), flushes_(flushes), leader_(leader) {}

  // Engine::erase().
  Result<ErasureReport> erase() EC_EXCLUDES(mutex_);
  // What was erased up to `through` leaves log and key ring, and is pending no more. False: it is
  // to be asked again, since a flush must come first, or a reader holds a memtable.
  Result<bool> finish(SequenceNumber through);

  // Disjoint ranges. What memtables hold counts from the moment it was written.
  std::uint64_t pending_ranges() const;
  void add_to(Stats& stats) const;

 private:
  Status flush_log(SequenceNumber through);
  Status wait(SequenceNumber through, std::uint64_t failures_before) EC_EXCLUDES(mutex_);
  bool memtables_hold(SequenceNumber through) const;
  Status destroy_keys(SequenceNumber through);
  std::uint64_t overwritten_bytes() const;

  const Store store_;
  DriveRoom& room_;
  Compactor& compactor_;
  FlushLane& flushes_;
  CommitLeader& leader_;
  std::atomic<std::uint64_t> destroyed_keys_{0};
  Mutex mutex_;
  CondVar pause_;  // nobody notifies it
};

}  // namespace edgecase::engine
