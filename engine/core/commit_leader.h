// Group commit: the one way of writes into the log and the memtable. One writer leads at a time
// (commit_queue.h): it takes everybody who waits, appends their batches to the log, syncs once if
// anyone asked for it, adds the entries to the memtable, shows them and wakes the others. Whoever
// comes meanwhile forms the next group.
//
// A group is committed in parts, each within one segment of the log: only when a part is in the log
// whole, and synced if wanted, does anything of it reach the memtable, so that a batch that failed
// is never seen.
//
// Threads: any. Members are those of the thread that leads, which the queue hands over, with its
// own mutex; the leader holds no other lock. It waits for the metadata drive, and for a flush when
// memory or the log is full; a writer waits for its turn and its pause (pacer.h).
#pragma once

#include <atomic>
#include <span>

#include "base/check.h"
#include "core/commit_queue.h"
#include "core/drives.h"
#include "core/flush_lane.h"
#include "core/memtable_writer.h"
#include "core/pacer.h"
#include "core/store.h"
#include "edgecase/write_batch.h"

namespace edgecase::engine {

class CommitLeader {
 public:
  // All outlive it; `active` is the memtable in Views.
  CommitLeader(const Store& store, DriveRoom& room, Compactor& compactor, Pacer& pacer,
               FlushLane& flushes, std::shared_ptr<Memtable> active)
      : store_(store),
        room_(room),
        compactor_(compactor),
        pacer_(pacer),
        flushes_(flushes),
        memtable_(store, flushes, pacer, std::move(active)),
        log_(store, commits_, flushes, memtable_) {}

  // Engine::write(), set_commit_companion() and flush().
  Status write(const WriteBatch& batch, Durability durability);
  void set_companion(CommitCompanion* companion);
  Status flush();

  // A batch that the log had when the store was opened, before anybody writes. Answers how many
  // entries it has. It waits for flushes of large ones if it may.
  Result<std::uint64_t> replay(SequenceNumber first, ByteView payload, bool may_wait);
  // An erasure that the manifest knows, in the order of sequences between the records: it is
  // applied where the record that had it is lost.
  void replay_erasure(const RangeDelete& erased);
  // After the last one: all of it is visible.
  void end_replay();
  // Until then the log is read: nobody turns or overwrites it.
  bool is_replayed() const { return is_replayed_.load(); }
  // Has a slot of the log made ready.
  void prepare_slot() { log_.prepare_slot(); }

  // As LogRoom::turn(), once the caller leads.
  Status turn_log(SequenceNumber through);
  // The same, on the compaction lane: leads for a moment, but waits for nobody, and does nothing
  // where it would.
  Status try_turn_log(SequenceNumber through);

  std::uint64_t user_bytes() const { return memtable_.user_bytes(); }
  void add_to(Stats& stats) const;

 private:
  // Waits for its turn to lead, and does `work` then.
  template <typename Work>
  void lead(Work work) {
    CommitQueue::Writer writer;
    const bool leads = commits_.wait_for_turn(writer);
    EC_CHECK(leads);  // nobody does for it what it wants
    work();
    commits_.finish(0);
  }

  Status check_batch(const WriteBatch& batch) const;
  Status check_range_deletes(const WriteBatch& batch) const;
  Status check_namespace(NamespaceId id) const;
  void commit_group() EC_REQUIRES(leading);
  bool ask_companion() EC_REQUIRES(leading);
  Status prepare_for(const WriteBatch& batch, bool may_use_reserve) EC_REQUIRES(leading);
  Status make_room_for(const WriteBatch& batch) EC_REQUIRES(leading);
  using Part = std::span<CommitQueue::Writer* const>;
  // Commits as many of them as one segment takes, the first at least. Answers how many.
  std::size_t commit_part(Part rest) EC_REQUIRES(leading);
  Status append_part(Part part, bool wants_sync) EC_REQUIRES(leading);
  Status log_part(Part part, bool wants_sync) EC_REQUIRES(leading);
  std::uint64_t log_bytes_of(const WriteBatch& batch) const;
  void name_erasures(SequenceNumber through);

  const Store store_;
  DriveRoom& room_;
  Compactor& compactor_;
  Pacer& pacer_;
  FlushLane& flushes_;
  CommitQueue commits_;
  MemtableWriter memtable_;
  LogRoom log_;

  std::atomic<bool> is_replayed_{false};
  std::atomic<SequenceNumber> named_erasures_{0};     // up to it the manifest knows of them
  std::atomic<CommitCompanion*> companion_{nullptr};  // changed by who leads
  WriteBatch companion_batch_ EC_GUARDED_BY(leading);
  CommitQueue::Writer companion_writer_ EC_GUARDED_BY(leading);
  std::int64_t synced_ns_ EC_GUARDED_BY(leading) = 0;  // the log was synced so long for the group
  // Added to by the leader alone.
  std::atomic<std::uint64_t> groups_{0};
  std::atomic<std::uint64_t> batches_{0};
  std::atomic<std::uint64_t> entries_{0};
};

}  // namespace edgecase::engine
