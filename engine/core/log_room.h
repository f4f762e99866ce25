// Room in the log for what is to be written: a segment, or one that comes free after a flush; and
// how a log that failed comes to take records again. What the log itself is: wal.h.
//
// Threads: the commit leader's. On Lane::Compaction slots are made ready, and for a moment it leads
// there, if nobody does, to heal the log or to let it rest. make_room() waits for a flush when the
// log is at its limit; the rest waits for the metadata drive alone. It has no lock: what the
// leader does not own is atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/commit_queue.h"
#include "core/flush_lane.h"
#include "core/memtable_writer.h"
#include "core/store.h"

namespace edgecase::engine {

class LogRoom {
 public:
  // All outlive it.
  LogRoom(const Store& store, CommitQueue& commits, FlushLane& flushes, MemtableWriter& memtable)
      : store_(store), commits_(commits), flushes_(flushes), memtable_(memtable) {}

  // Until the log takes `payload_bytes`. Errors: Busy at its limit while flushes fail, or why it
  // has failed and is not tried again yet.
  Status make_room(std::uint64_t payload_bytes) EC_REQUIRES(leading);
  // As Wal::start_segment(), and has another slot made ready.
  Status start_segment(std::uint64_t payload_bytes) EC_REQUIRES(leading);
  // Makes all of it durable. `synced_ns` grows by the time that took.
  Status sync(std::int64_t& synced_ns) EC_REQUIRES(leading);
  // What is newer than `through` is to lie in no segment that holds what is older, nor beside it in
  // a memtable; and segments whose records are in tables come free. A log at its limit may need it
  // twice.
  Status turn(SequenceNumber through) EC_REQUIRES(leading);

  // It takes nothing until it has healed, which is tried later, by writers and in the background.
  void note_failure(const Status& cause) EC_REQUIRES(leading);
  // Now, whatever failed before.
  void may_heal() EC_REQUIRES(leading) { heal_not_before_ns_ = 0; }

  // In the background, if the log has none.
  void prepare_slot();

 private:
  Status heal(std::uint64_t payload_bytes) EC_REQUIRES(leading);
  Result<bool> release_flushed() EC_REQUIRES(leading);
  Status make_slot_free() EC_REQUIRES(leading);
  void try_heal();
  void schedule_heal(std::int64_t delay_ns);
  void schedule_rest(std::int64_t delay_ns);

  const Store store_;
  CommitQueue& commits_;
  FlushLane& flushes_;
  MemtableWriter& memtable_;
  std::int64_t heal_not_before_ns_ EC_GUARDED_BY(leading) = 0;  // boot time
  std::int64_t heal_delay_ns_ EC_GUARDED_BY(leading) = 0;
  std::atomic<std::int64_t> last_sync_ns_{0};  // boot time
  std::atomic<bool> rest_scheduled_{false};
  std::atomic<bool> slot_scheduled_{false};
};

}  // namespace edgecase::engine
