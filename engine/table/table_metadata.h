// TableMetadata and ValueFileMetadata: the manifest's words on the files of one flush or merge.
// Plain data; immutable once published.
#pragma once

#include <cstdint>

#include "base/entry.h"
#include "edgecase/engine.h"
#include "expiry/retention_rules.h"
#include "metadata/umeta_table.h"

namespace edgecase::engine {

using FileNumber = std::uint64_t;  // never reused within a store

// A value table: a file of items (groups and single large values), on the drive its placement says.
struct ValueFileMetadata {
  FileNumber number = 0;
  NamespaceId namespace_id = 0;
  Placement placement = Placement::Values;
  std::uint64_t size_bytes = 0;
  std::uint64_t item_count = 0;
  std::uint32_t checksum = 0;    // crc32c of the whole file, when it was written
  std::uint64_t item_bytes = 0;  // of its items, when it was written
  // By the rules of `rule_epoch` everything in it has expired by `expiry_max_ns`, which lies before
  // `bucket.end_ns`, and nothing has before `expiry_min_ns`.
  Bucket bucket = {};
  std::int64_t expiry_min_ns = kNeverNs;
  std::int64_t expiry_max_ns = kNeverNs;
  // Bounds of the times in its keys, where they have times: nothing is earlier, nothing later;
  // kNeverNs: not known.
  std::int64_t time_min_ns = kNeverNs;
  std::int64_t time_max_ns = kNeverNs;
  RuleEpoch rule_epoch = 0;
  // Items that nothing points to may have been overwritten: `checksum` no longer holds.
  bool has_blanks = false;
};

// Level 0 is what flushes wrote, of all namespaces; from level 1 down a table holds one namespace.
inline constexpr std::uint8_t kLevelMax = 6;

// A table's items are all groups or all large values: of one key both may have an entry.
enum class TableKind : unsigned char { Groups = 0, Singles = 1 };

// A metadata table: one record an item, its keys' bounds and where it lies; filters; index. Within
// one table the items' key ranges do not overlap and every full key stands once. The same holds for
// all tables of one run.
struct TableMetadata {
  FileNumber number = 0;
  std::uint8_t level = 0;
  TableKind kind = TableKind::Groups;
  FileNumber run = 0;            // level 0: the table's own number
  NamespaceId namespace_id = 0;  // level 0: 0
  std::uint64_t size_bytes = 0;
  std::uint64_t entry_count = 0;  // deletes included
  std::uint64_t delete_count = 0;
  std::uint64_t item_count = 0;
  std::uint32_t checksum = 0;  // crc32c of the whole file
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
  // No entry is covered by a range delete up to this sequence.
  SequenceNumber purged_sequence = 0;
  // What rules up to this epoch changed has been moved to files that know of it.
  RuleEpoch rule_epoch = 0;
  // Entries that were gathered apart from others, among which they lie, because they expire much
  // sooner; 0: all others. One for all tables of a run.
  LifeClass life = 0;
  Bytes smallest;  // full keys, both included
  Bytes largest;
  ValueFileUses value_files;  // what its items point into, ascending

  // Bytes of its items, in the value layer.
  std::uint64_t item_bytes() const { return value_files.total_bytes(); }
};

}  // namespace edgecase::engine
