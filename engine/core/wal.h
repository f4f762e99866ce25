// The write-ahead log as a ring of slots (WalSlots, wal_slots.cc): files of one size, written
// before they are used, so that a commit neither grows a file nor allocates. A *segment* is one use
// of a slot; segments are numbered from 1 and never share a number. A batch too large for a slot
// gets a larger one of its own, which is deleted after use.
//
// A segment that is full is not synced for that: its file stays open, and the next Sync makes it
// durable, oldest first, and then the current one. What tables hold by then need never reach the
// drive, and its slot is written over in the page cache. Heads are durable before a record follows,
// and say whether all before them is.
//
// Invariants: heads form a chain without gaps, whatever a power cut takes; what nobody synced has
// no record behind it that somebody did, so that recovery may end where the first one is missing;
// the slots together never exceed the limit; what is not synced fits into one slot, if need be a
// large one; a slot is reused only when the manifest says that everything in it is in tables.
//
// Where a write or a sync fails all from the first segment that is not durable is given up: a new
// one names as that one's length what was durable of it, and begins with copies of the records that
// were acknowledged after that and are in no table. Its head comes last: a kill before finds the
// log as it was. A batch that failed may therefore appear after a crash that follows at once, like
// any batch without an answer; never in a running store, never beside later ones.
//
// Threads: the commit leader writes (what requires `leading`); anyone calls the rest. The mutex
// guards the chain and is never held across I/O; the slots have their own. It waits for the
// metadata drive alone. More methods than a class of the house has, since each is one question or
// change of the same chain.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "core/commit_queue.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "log/log.h"

namespace edgecase::engine {

// The slots of the write-ahead log: files of one size, made before they are used. A slot is free,
// or in use by a segment, or resists removal; what each may still hold of old records is known, so
// that what was erased or has expired can be overwritten.
//
// Threads: any. The commit leader takes slots, Lane::Compaction makes and overwrites them. Whoever
// writes a slot holds create_mutex_ meanwhile, and whoever finds none free waits for that; the
// other mutex guards the lists and is never held across I/O.
struct WalSlot {
  std::uint64_t index = 0;
  std::uint64_t capacity_bytes = 0;
  // Its file holds nothing of older records, of no use that was made of it.
  SequenceNumber oldest = 0;
  static constexpr std::int64_t kNotKnown = std::numeric_limits<std::int64_t>::min();
  // Nothing in its file expires before; not known of slots that were there at the start.
  std::int64_t expires_ns = kNotKnown;
  // Behind these it holds nothing but zeros.
  std::uint64_t dirty_bytes = std::numeric_limits<std::uint64_t>::max();
};

class WalSlots {
 public:
  using Choice = std::function<bool(const WalSlot&)>;

  // Slots have `segment_bytes`, but for the large one of a large batch; all of them together
  // `limit_bytes` at most.
  WalSlots(FileSystem& file_system, std::string metadata_directory, std::uint64_t segment_bytes,
           std::uint64_t limit_bytes);

  // What was there at the start: slots that segments use, and those that hold nothing needed.
  // Before any other call. Does I/O: free slots get names that are durable.
  Status adopt(const std::vector<WalSlot>& used, std::vector<WalSlot> free);

  // The file of a slot.
  std::string path(std::uint64_t index) const;
  // The largest a slot may be: two of them and an ordinary one must have room, or nothing could
  // ever follow a large one.
  std::uint64_t large_max_bytes() const { return (limit_bytes_ - segment_bytes_) / 2; }

  // A free slot, or a new one. Errors: Busy at the limit, InvalidArgument for more than a slot may
  // have, OutOfSpace, IoError.
  Result<WalSlot> take(std::uint64_t capacity_bytes) EC_EXCLUDES(create_mutex_, mutex_);
  // The manifest needs no record in it any more.
  void give_back(const WalSlot& slot) EC_EXCLUDES(mutex_);
  // What held records is overwritten first. If that fails it keeps its name until it can be done,
  // or is recognised at recovery by its number.
  Status remove(const WalSlot& slot) EC_EXCLUDES(mutex_);

  // Whether one more could be made ready for the next segment; makes it. Does I/O.
  bool needs_one() const EC_EXCLUDES(mutex_);
  Status prepare_one() EC_EXCLUDES(create_mutex_, mutex_);

  // Whether one of those that no segment uses is such, or resists removal.
  bool any_free(const Choice& is_such) const EC_EXCLUDES(mutex_);
  bool any_resists(const Choice& is_such) const EC_EXCLUDES(mutex_);
  // Overwrites the free ones that are such, and removes those that resisted. Does I/O.
  Status overwrite(const Choice& is_such) EC_EXCLUDES(create_mutex_, mutex_);
  std::uint64_t overwritten_bytes() const { return overwritten_bytes_.load(); }
  // From now on nothing is known of when anything in them expires.
  void forget_expiries() EC_EXCLUDES(mutex_);

 private:
  Status name_again(std::vector<WalSlot>& free) EC_EXCLUDES(mutex_);
  void count(const WalSlot& slot) EC_REQUIRES(mutex_);
  std::uint64_t take_index() EC_REQUIRES(mutex_);
  bool take_free(std::uint64_t capacity_bytes, WalSlot& slot) EC_EXCLUDES(mutex_);
  bool reserve_space(std::uint64_t capacity_bytes) EC_REQUIRES(create_mutex_) EC_EXCLUDES(mutex_);
  Result<WalSlot> create(std::uint64_t capacity_bytes) EC_REQUIRES(create_mutex_)
      EC_EXCLUDES(mutex_);

  FileSystem& file_system_;
  const std::string metadata_directory_;
  const std::uint64_t segment_bytes_;
  const std::uint64_t limit_bytes_;
  std::atomic<std::uint64_t> overwritten_bytes_{0};

  Mutex create_mutex_;  // held while a slot is written; taken before mutex_
  mutable Mutex mutex_;
  std::vector<WalSlot> free_ EC_GUARDED_BY(mutex_);
  std::vector<WalSlot> resisting_ EC_GUARDED_BY(mutex_);  // could not be overwritten and deleted
  std::vector<bool> used_indexes_ EC_GUARDED_BY(mutex_);
  std::uint64_t total_bytes_ EC_GUARDED_BY(mutex_) = 0;  // capacity of all slots
};

// A segment that takes no more records.
struct WalSegment {
  std::uint64_t number = 0;
  WalSlot slot;
  SequenceNumber last_sequence = 0;  // of its records, or of those before it
  std::uint64_t bytes = 0;           // of records
  bool given_up = false;             // its file is not trusted with another use
  bool durable = true;               // all of it; of one that is not so many bytes are:
  std::uint64_t durable_bytes = 0;
  std::shared_ptr<LogFile> file = nullptr;  // of one that is not; null if another process wrote it
};

class Wal {
 public:
  struct Settings {
    std::string metadata_directory;
    StoreId store_id{};
    std::uint64_t segment_bytes = 0;
    std::uint64_t limit_bytes = 0;
    KeyRing* keys = nullptr;  // null: not encrypted
  };
  // `random` is used by the leader alone.
  Wal(FileSystem& file_system, Random& random, Settings settings);

  // What recovery found: the chain old to new, slots that hold nothing needed, the highest segment
  // number ever seen. Before any other call. Does I/O: free slots get names that are durable.
  Status adopt(std::vector<WalSegment> chain, std::vector<WalSlot> free,
               std::uint64_t highest_number);

  // Whether the current segment takes `payload_bytes` more.
  bool fits(std::uint64_t payload_bytes) const EC_REQUIRES(leading);
  // Errors leave what is not durable to be given up.
  Status append(SequenceNumber first, SequenceNumber last, std::span<const ByteView> parts)
      EC_REQUIRES(leading);
  Status sync() EC_REQUIRES(leading);
  // Nothing was written for a while: the head says how far the log goes. Where that fails the log
  // is replaced with the next write.
  void rest() EC_REQUIRES(leading);

  // Starts a segment that takes `payload_bytes`; closes the current one, or if that has failed
  // replaces it, with copies of the records up to `acknowledged` that are newer than `flushed`.
  // Errors: Busy at the limit, or until a flush succeeds; InvalidArgument when the limit is too
  // small for the batch, OutOfSpace, IoError. May be tried again.
  Status start_segment(std::uint64_t payload_bytes, SequenceNumber acknowledged,
                       SequenceNumber flushed) EC_REQUIRES(leading);

  // Makes durable what recovery found. Must have succeeded before the manifest names a segment as
  // the oldest one. Does I/O, once.
  Status sync_recovered();
  // Number of the oldest segment with a record newer than `flushed`, else of the current one; 0 if
  // there was never one. The manifest may name it from now on.
  std::uint64_t oldest_needed(SequenceNumber flushed);
  // The manifest no longer needs what is older.
  void release_before(std::uint64_t oldest_needed);

  // Whether a file of the log may hold records up to `through`; whether the current one may.
  bool holds(SequenceNumber through) const;
  bool current_holds(SequenceNumber through) const;
  // Overwrites slots that nobody needs and that may hold some. Does I/O.
  Status overwrite_free(SequenceNumber through) {
    return slots_.overwrite([&](const WalSlot& slot) { return slot.oldest <= through; });
  }

  // Notes when a record that was appended expires.
  void note_expiry(std::int64_t expires_ns) EC_REQUIRES(leading);
  // From now on nothing is known of when anything expires.
  void forget_expiries();
  // Whether a file of the log may hold something that has expired by then; whether one may that is
  // still needed.
  bool holds_expired(std::int64_t now_ns) const;
  bool needs_expired(std::int64_t now_ns) const;
  // As overwrite_free(), of what may have expired.
  Status overwrite_expired(std::int64_t now_ns) {
    return slots_.overwrite([&](const WalSlot& slot) { return slot.expires_ns < now_ns; });
  }

  // Makes sure that a slot is ready for the next segment, within the limit. Does I/O.
  Status prepare_slot() { return slots_.prepare_one(); }
  bool needs_slot() const { return slots_.needs_one(); }

  // What the log consists of now, old to new.
  struct File {
    std::string path;
    std::uint64_t bytes = 0;           // of records
    SequenceNumber last_sequence = 0;  // UINT64_MAX: it takes more
  };
  std::vector<File> files() const;

  bool has_closed() const;             // segments before the current one
  std::uint64_t record_bytes() const;  // in segments that are still needed
  std::uint64_t bytes_written() const { return bytes_written_.load(); }
  std::uint64_t syncs() const { return syncs_.load(); }
  std::uint64_t overwritten_bytes() const { return slots_.overwritten_bytes(); }

 private:
  void note_failure() EC_REQUIRES(leading);
  WalSegment current_segment() const EC_REQUIRES(mutex_, leading);
  // `begin` writes to a slot of so many bytes, which is deleted if that fails.
  Status begin_in_slot(std::uint64_t capacity_bytes,
                       const std::function<Status(const WalSlot&)>& begin) EC_REQUIRES(leading);
  Status continue_chain(const WalSlot& slot, SequenceNumber acknowledged) EC_REQUIRES(leading);
  void link(const WalSegment& before) EC_REQUIRES(leading);
  Status replace_failed(SequenceNumber acknowledged, SequenceNumber flushed) EC_REQUIRES(leading);
  Result<std::vector<WalSegment>> take_failed() EC_REQUIRES(leading);
  Status copy_failed(const WalSlot& slot, const std::vector<WalSegment>& failed,
                     SequenceNumber after, SequenceNumber acknowledged) EC_REQUIRES(leading);
  Result<std::unique_ptr<LogWriter>> prepare_segment(const WalSlot& slot, const WalSegment& before)
      EC_REQUIRES(leading);
  Status copy_records(LogWriter& to, const std::string& path, SequenceNumber& copied,
                      SequenceNumber through);
  void close_current() EC_REQUIRES(mutex_, leading);
  void become_current(const WalSlot& slot, std::unique_ptr<LogWriter> writer, SequenceNumber first,
                      SequenceNumber last_sequence) EC_REQUIRES(mutex_, leading);
  bool all_is_durable() const EC_REQUIRES(leading);
  std::uint64_t unsynced_bytes() const EC_REQUIRES(leading);
  Status sync_closed() EC_REQUIRES(leading);
  void note_durable(std::uint64_t number);

  FileSystem& file_system_;
  Random& random_;
  const Settings settings_;
  WalSlots slots_;

  // Null before the first segment since open.
  std::unique_ptr<LogWriter> writer_ EC_GUARDED_BY(leading);
  bool failed_ EC_GUARDED_BY(leading) = false;  // it takes no more
  SequenceNumber durable_sequence_ EC_GUARDED_BY(leading) = 0;
  // Until so much has been written the drive gets what is appended at once: somebody synced lately.
  std::uint64_t write_out_until_ EC_GUARDED_BY(leading) = 0;
  // The last sequence of the current segment; current_ does not follow each record.
  SequenceNumber current_last_ EC_GUARDED_BY(leading) = 0;
  std::uint64_t next_number_ EC_GUARDED_BY(leading) = 1;

  Mutex recovered_mutex_;  // taken before mutex_
  bool recovered_is_synced_ EC_GUARDED_BY(recovered_mutex_) = true;
  mutable Mutex mutex_;
  std::deque<WalSegment> closed_ EC_GUARDED_BY(mutex_);   // old to new
  std::uint64_t named_oldest_ EC_GUARDED_BY(mutex_) = 0;  // by the manifest, perhaps
  // While segments are replaced: the first of them, which the chain needs. 0: none is.
  std::uint64_t replaced_from_ EC_GUARDED_BY(mutex_) = 0;
  // Number 0: none. Its size and last sequence are current_bytes_ and current_last_.
  WalSegment current_ EC_GUARDED_BY(mutex_);

  std::atomic<std::uint64_t> current_bytes_{0};  // of its records; stored by the leader alone
  std::atomic<std::uint64_t> bytes_written_{0};  // the same
  // When the first of the current segment's file expires; lowered by the leader.
  std::atomic<std::int64_t> current_expires_ns_{std::numeric_limits<std::int64_t>::max()};
  std::atomic<std::uint64_t> syncs_{0};
};

// Counters that one thread at a time adds to and any reads: no locked instruction.

// Adds while nobody else does: another caller for `counter` must have a happens-before with this
// call.
inline void add_alone(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// Recovery (wal_recovery.cc) reads what is left in the slots, and replays it. It writes nothing.

// Records that are not what was written, or are gone; their batches are lost. What else such a
// batch said of keys is lost with it: where it replaced or deleted a value, the one before is what
// the store has now, and nobody can tell of which keys that is so. It is not so of what was erased:
// the manifest knows of an erasure before the write of it returns (EngineImpl::write()), and of
// rules of retention, evictions and dropped namespaces, which are never in the log.
struct WalDamage {
  std::string path;
  std::uint64_t offset = 0;  // in the file; 0: all of it
  std::string problem;
  SequenceNumber first = 0, last = 0;  // of the writes that are lost; 0: not known

  std::string words() const;  // without the path
};

struct WalContents {
  // Old to new. `bytes` is the length that the next one names, for the last one no limit;
  // read_wal() puts the true one there, and fills last_sequence. Whether one is durable whole the
  // heads after it say.
  std::vector<WalSegment> chain;
  std::vector<WalSlot> free;  // slots that hold nothing needed
  std::uint64_t highest_number = 0;
  // Segments that are not there: the number of one, by that of the segment before it in the chain,
  // 0 for none. Others may be missing beside it.
  std::map<std::uint64_t, std::uint64_t> missing;
  std::vector<Status> unreadable;  // slots whose heads give errors; they are among those free

  // Filled by read_wal().
  SequenceNumber last_sequence = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::vector<WalDamage> damage;  // what read_wal() stepped over, and what is missing
  bool torn_tail = false;
  // Slots of segments behind one that a power cut took a part of, old to new: nobody synced them.
  // They are among those that are free.
  std::vector<WalSlot> dropped;
};

// Finds the segments from `oldest_needed` on by the chain of predecessors; of one that is missing
// those on both sides. Errors: Corruption (two of a number, a chain that turns back), Unsupported,
// Unavailable for a log of another store, IoError.
Result<WalContents> find_wal(FileSystem& file_system, const std::string& metadata_directory,
                             const StoreId& store_id, std::uint64_t oldest_needed,
                             KeyRing* keys = nullptr);

// Calls `apply` with every batch in order: the sequence of its first entry and its bytes. A gap in
// what is newer than `flushed` is damage. `apply` answers how many entries there are,
// or Corruption for bytes that are no batch; the Corruption of read_wal() names file and offset.
using ApplyBatch = std::function<Result<std::uint64_t>(SequenceNumber, ByteView)>;
Status read_wal(FileSystem& file_system, const std::string& metadata_directory,
                SequenceNumber flushed, WalContents& contents, const ApplyBatch& apply,
                KeyRing* keys = nullptr);

// The newest of their sequences; 0: there are none.
SequenceNumber newest_of(std::span<const RangeDelete> deletes);
// The log had these erasures, as the manifest knows: where it ends before, its end is lost. After
// read_wal().
void note_known(const std::string& metadata_directory, SequenceNumber flushed,
                std::span<const RangeDelete> erasures, WalContents& contents);

// Before the slot of a segment that was dropped is used: they are no segments any more, durably.
// Errors: IoError.
Status forget_dropped(FileSystem& file_system, const std::string& metadata_directory,
                      const StoreId& store_id, const WalContents& contents);

}  // namespace edgecase::engine
