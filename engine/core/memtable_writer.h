// The commit leader writes through these: the memtable that takes entries now, and room for them in
// the log.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/write_batch_reader.h"
#include "core/commit_queue.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/store.h"

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

}  // namespace edgecase::engine
