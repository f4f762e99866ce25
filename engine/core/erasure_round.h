// Erasure, from the call to the last byte: ranges that were erased are hidden already; this brings
// them out of memtables and log, has tables and values purged (engine/compaction), and ends with
// the keys and the manifest.
//
// Threads: erase() is called by any and waits there: for a flush, then for the round, for
// Options::erasure_wait_ms at most while somebody holds on to what was erased. finish() is called
// on Lane::Compaction, once no table and no value file holds anything; it waits for the drives
// alone. The mutex is for the pause between two looks.
#pragma once

#include <atomic>
#include <cstdint>

#include "compaction/compactor.h"
#include "core/commit_leader.h"
#include "core/drives.h"
#include "core/flush_lane.h"
#include "core/store.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

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
