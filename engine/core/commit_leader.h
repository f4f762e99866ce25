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
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/entry.h"
#include "core/commit_queue.h"
#include "core/drives.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/store.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase::engine {

// The memtable that takes entries now: what the log has is added to it, and when it is full another
// takes its place.
//
// Threads: the commit leader's, but for user_bytes(). It waits for a flush when two memtables stand
// beside the active one already; it has no lock.
class MemtableWriter {
 public:
  // `active` is the one in Views. All outlive it.
  MemtableWriter(const Store& store, FlushLane& flushes, Pacer& pacer,
                 std::shared_ptr<Memtable> active)
      : store_(store),
        flushes_(flushes),
        pacer_(pacer),
        active_(std::move(active)),
        last_sequence_(store.versions.flushed_sequence()) {}

  // The sequence of the last entry added, or flushed before.
  SequenceNumber last_sequence() const EC_REQUIRES(leading) { return last_sequence_; }
  const Memtable& active() const EC_REQUIRES(leading) { return *active_; }

  // The draft of a batch of one put or delete: while the log takes it, its place is on the way from
  // memory. Then either apply() or discard().
  std::optional<Memtable::Draft> draft_of(const WriteBatch& batch) EC_REQUIRES(leading);
  void apply(const Memtable::Draft& draft) EC_REQUIRES(leading);
  void discard(const Memtable::Draft& draft) EC_REQUIRES(leading) { active_->discard(draft); }
  // `first` is the sequence of the first entry: last_sequence() + 1, or more where the log has lost
  // some.
  void apply(SequenceNumber first, WriteBatchReader& entries) EC_REQUIRES(leading);

  // An erasure that the manifest tells of; nothing becomes of one that was applied, or is in
  // tables.
  void replay_erasure(const RangeDelete& erased) EC_REQUIRES(leading);

  // Another memtable takes the place of one that is full. Errors: as rotate().
  Status make_room() EC_REQUIRES(leading);
  // The active memtable, if anything is in it, waits to be written out. Errors: Busy when that
  // needs a flush first, and flushes fail.
  Status rotate() EC_REQUIRES(leading);
  // A batch of which a memtable to itself is made, when those before it are in tables: memory has
  // no room beside it.
  bool is_large(std::size_t batch_bytes) const;
  // All that was written is in tables then. Errors: as rotate().
  Status empty() EC_REQUIRES(leading);

  // Keys and values added since open.
  std::uint64_t user_bytes() const { return user_bytes_.load(std::memory_order_relaxed); }

 private:
  // What the log's records of one series expire by; a key without its time is the series.
  struct Series {
    NamespaceId namespace_id = 0;
    Bytes key_part = {};
    std::int64_t retention_ns = kRetentionForever;
    std::uint64_t floor = 0;  // ordinals below it have expired
  };

  void apply_range(RangeDelete made) EC_REQUIRES(leading);
  GroupCodec codec_of(NamespaceId id) EC_REQUIRES(leading);
  const ExpiryView& log_expiry() EC_REQUIRES(leading);
  std::int64_t log_expiry_of(NamespaceId id, ByteView key) EC_REQUIRES(leading);

  const Store store_;
  FlushLane& flushes_;
  Pacer& pacer_;
  std::shared_ptr<Memtable> active_ EC_GUARDED_BY(leading);
  SequenceNumber last_sequence_ EC_GUARDED_BY(leading);
  std::vector<std::optional<GroupCodec>> codecs_ EC_GUARDED_BY(leading);  // as far as asked for
  ExpiryView log_expiry_ EC_GUARDED_BY(leading);
  Series series_ EC_GUARDED_BY(leading);  // asked about last
  std::atomic<std::uint64_t> user_bytes_{0};
};

// Room in the log for what is to be written: a segment, or one that comes free after a flush; and
// how a log that failed comes to take records again. What the log itself is: wal.h.
//
// Threads: the commit leader's. On Lane::Compaction slots are made ready, and for a moment it leads
// there, if nobody does, to heal the log or to let it rest. make_room() waits for a flush when the
// log is at its limit; the rest waits for the metadata drive alone. It has no lock: what the
// leader does not own is atomic.
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

// Writes through a MemtableWriter and a LogRoom (memtable_writer.cc).
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
