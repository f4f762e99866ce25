// Plain counters of one open engine, copied at one moment.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "edgecase/status.h"

namespace edgecase {

struct LayerStats {
  std::uint64_t files = 0;
  std::uint64_t live_bytes = 0;        // of files the current version names
  std::uint64_t bytes_written = 0;     // since open, WAL included on the metadata layer
  std::uint64_t bytes_read = 0;        // since open
  Status degraded;                     // Ok, or why this layer takes no writes
  std::int64_t degraded_since_ns = 0;  // wall time
};

struct CompactionStats {
  std::uint64_t merges = 0;              // of records alone
  std::uint64_t relocations = 0;         // that rewrote what overlaps or is mostly dead
  std::uint64_t failures = 0;            // each is tried again
  std::uint64_t carried_items = 0;       // by reference: no value was read or written
  std::uint64_t rewritten_items = 0;     // groups: read, merged, written anew
  std::uint64_t copied_items = 0;        // moved byte for byte
  std::uint64_t dropped_items = 0;       // superseded or deleted single values
  std::uint64_t seen_entries = 0;        // of rewritten groups
  std::uint64_t superseded_entries = 0;  // of them, dropped since there is a newer one
  std::uint64_t dropped_deletes = 0;
  std::uint64_t value_bytes = 0;  // written
  std::uint64_t metadata_bytes = 0;
  std::uint64_t removed_files = 0;
  std::uint64_t level0_tables = 0;
  std::uint64_t runs = 0;           // of all namespaces, without level 0
  std::uint64_t runs_max = 0;       // of one namespace: what one key may be looked for in
  std::uint64_t garbage_bytes = 0;  // in value files, known to be dead
  std::uint64_t range_deletes = 0;  // that wait for merges
};

// Why the time by which entries expire does not go with the clock.
enum class ExpiryWait : unsigned char {
  None,
  Untrusted,  // the clock is not trusted: it stands still
  Jump,       // the clock is far ahead of what has passed: it goes on as it did
};

struct ExpiryStats {
  std::uint64_t rules = 0;
  std::uint64_t dropped_files = 0;  // value files that went since open, whole
  std::uint64_t dropped_bytes = 0;  // their sizes
  std::uint64_t drops = 0;          // edits that read no drive
  std::uint64_t purges = 0;         // merges because something had expired or a rule had changed
  std::uint64_t waiting_bytes = 0;  // of value files that should be gone by now
  std::uint64_t evicted_waiting_bytes = 0;  // of value files that go since evict() was called
  bool removals_wait = false;               // files that went still have their names
  bool bytes_wait = false;  // some of them still hold their bytes, which are to be overwritten
  // Earliest time of a reading in a value file; INT64_MAX: none. It may have been superseded.
  std::int64_t oldest_ns = INT64_MAX;
  // When the next value file is due; INT64_MAX: none is.
  std::int64_t next_ns = INT64_MAX;
  // The time by which entries expire; INT64_MIN: none is known.
  std::int64_t now_ns = INT64_MIN;
  ExpiryWait wait = ExpiryWait::None;
  std::uint64_t waits = 0;  // 1: `wait` is not None
  std::int64_t wait_since_boot_ns = 0;
  // Bytes of value files that are hidden, and stay: the clock leapt, and nobody has confirmed it.
  std::uint64_t held_bytes = 0;
  std::int64_t held_since_boot_ns = 0;
};

struct ErasureStats {
  std::uint64_t pending_ranges = 0;     // hidden for good, with bytes somewhere; disjoint
  std::uint64_t erased_ranges = 0;      // since open
  std::uint64_t erasures = 0;           // that ended well, since open
  std::uint64_t failures = 0;           // each is tried again
  std::uint64_t rewritten_bytes = 0;    // of values that lay beside what was erased
  std::uint64_t overwritten_bytes = 0;  // of files, log and manifests, since open
};

// What gets read; scans are counted in `value_reads` and the blocks.
struct ReadStats {
  static constexpr std::size_t kLevels = 7;

  std::uint64_t gets = 0;
  // What answered them, deletes included; the others found nothing.
  std::uint64_t memtable_hits = 0;
  std::array<std::uint64_t, kLevels> level_hits{};
  std::uint64_t level0_skips = 0;  // tables of level 0 that their NSTable ruled out
  std::uint64_t filter_probes = 0;
  std::uint64_t filter_negatives = 0;
  std::uint64_t metadata_block_loads = 0;  // blocks of records and filters, from the drive
  std::uint64_t value_reads = 0;           // of a page, an item, or several at once
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
};

// What was read again in idle time, since open.
struct ScrubStats {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t passes = 0;         // times that all files had their turn
  std::uint64_t damaged_files = 0;  // that are there now
};

struct EncryptionStats {
  bool is_on = false;
  std::uint64_t scope_keys = 0;
  std::uint64_t destroyed_keys = 0;  // of scopes that were erased as a whole, since open
  bool shares_keys = false;  // of some scopes, more than have keys of their own, with a namespace
};

struct Stats {
  LayerStats metadata;
  LayerStats values;
  CompactionStats compaction;
  ExpiryStats expiry;
  ErasureStats erasure;
  EncryptionStats encryption;
  ReadStats reads;
  ScrubStats scrub;

  // Ok, or why the last writes were refused, until there is room again. A layer may be degraded
  // while the log still takes writes.
  Status refused;

  std::uint64_t user_bytes_written = 0;  // keys and values as handed in
  std::uint64_t batches = 0;
  std::uint64_t entries_written = 0;
  std::uint64_t wal_bytes = 0;  // not yet covered by a flush
  std::uint64_t wal_syncs = 0;
  std::uint64_t commit_groups = 0;
  std::uint64_t memtable_bytes = 0;
  std::uint64_t immutable_memtables = 0;
  std::uint64_t flushes = 0;
  std::uint64_t cache_bytes = 0;
  std::uint64_t kept_memtable_bytes = 0;  // written out, and kept by snapshots and iterators
  std::uint64_t set_aside_bytes = 0;      // Engine::set_aside()
  std::uint64_t stall_ns = 0;             // writers held back
  std::uint64_t last_sequence = 0;
};

}  // namespace edgecase
