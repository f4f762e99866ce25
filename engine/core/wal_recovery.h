// Reads what is left in the slots of the write-ahead log, and replays it. It writes nothing.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/range_deletes.h"
#include "core/wal.h"

namespace edgecase::engine {

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
