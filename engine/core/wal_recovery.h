// What is left in the slots of the write-ahead log, and its replay. Reads only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/wal.h"

namespace edgecase::engine {

// Records that are not what was written, or are gone; their batches are lost.
struct WalDamage {
  std::string path;
  std::uint64_t offset = 0;  // in the file
  std::string problem;
};

struct WalContents {
  // Old to new. `bytes` is the length that the next one names, for the last one no limit;
  // read_wal() puts the true one there, and fills last_sequence. Whether one is durable whole the
  // heads after it say.
  std::vector<WalSegment> chain;
  std::vector<WalSlot> free;  // slots that hold nothing needed
  std::uint64_t highest_number = 0;

  // Filled by read_wal().
  SequenceNumber last_sequence = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::vector<WalDamage> damage;  // what read_wal() stepped over
  bool torn_tail = false;
  // Slots of segments behind one that a power cut took a part of, old to new: nobody synced them.
  // They are among those that are free.
  std::vector<WalSlot> dropped;
};

// Finds the segments from `oldest_needed` on by the chain of predecessors. Errors: Corruption when
// one is missing, Unsupported, Unavailable for a log of another store, IoError.
Result<WalContents> find_wal(FileSystem& file_system, const std::string& metadata_directory,
                             const StoreId& store_id, std::uint64_t oldest_needed,
                             KeyRing* keys = nullptr);

// Calls `apply` with every batch in order: the sequence of its first entry and its bytes. What is
// not newer than `flushed` may have gaps, the rest not. `apply` answers how many entries there are,
// or Corruption for bytes that are no batch; the Corruption of read_wal() names file and offset.
using ApplyBatch = std::function<Result<std::uint64_t>(SequenceNumber, ByteView)>;
Status read_wal(FileSystem& file_system, const std::string& metadata_directory,
                SequenceNumber flushed, WalContents& contents, const ApplyBatch& apply,
                KeyRing* keys = nullptr);

// Before the slot of a segment that was dropped is used: they are no segments any more, durably.
// Errors: IoError.
Status forget_dropped(FileSystem& file_system, const std::string& metadata_directory,
                      const StoreId& store_id, const WalContents& contents);

}  // namespace edgecase::engine
