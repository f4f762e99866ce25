// The side of the engine that compaction sees: hands each question on to the owner that knows.
// Threads: Lane::Compaction; schedule() from any. It has no lock, and waits for whom it asks.
#pragma once

#include "compaction/compaction_host.h"
#include "core/store.h"

namespace edgecase::engine {

class CommitLeader;
class DriveRoom;
class ErasureRound;
class FlushLane;
class Pacer;
class Retention;
class Scrubber;
class ValuesDrive;

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
