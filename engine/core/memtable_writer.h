// The memtable that takes entries now: what the log has is added to it, and when it is full another
// takes its place.
//
// Threads: the commit leader's, but for user_bytes(). It waits for a flush when two memtables stand
// beside the active one already; it has no lock.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/write_batch_reader.h"
#include "core/commit_queue.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/store.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
