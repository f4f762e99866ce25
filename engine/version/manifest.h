// The manifest's content, and CURRENT, which names the manifest (version_set.h writes both).
//
// VersionEdit: one change to what a store consists of, the payload of one manifest record. A
// manifest begins with an edit that builds the whole state from nothing; every later one is applied
// to it, whole or not at all. Plain data.
//
// Bytes, version 1: fields one after another, each a tag of one byte and its content. Numbers are
// varints unless said otherwise, "bytes" are length-prefixed (base/coding.h). A field may come
// several times where the word is "one".
//
//   tag  field
//     1  format version; the first field of a manifest's first edit, nowhere else
//     2  file numbers below this are reserved: never given out again
//     3  namespace ids below this have been given out
//     4  one namespace: id, name (bytes), placement (1 byte), codec (1 byte), scope_bytes
//     5  one added value file: number, namespace id, placement (1 byte), size in bytes, items,
//        checksum (fixed32), bytes of items, epoch of the retention rules, earliest time of a key
//        (varint, zigzag, + 1; 0 for none), class of its bucket (1 byte); unless that is 0: end of
//        the bucket, earliest and latest expiry (varints, zigzag)
//     6  one removed value file: number
//     7  one added table: level (1 byte), kind (1 byte: 0 groups, 1 singles), number, from level 1
//        on: namespace id, run; size in bytes, entries, deletes, items, checksum (fixed32),
//        smallest sequence, largest sequence, sequence up to which range deletes have been applied,
//        epoch of the retention rules, smallest full key (bytes), largest full key (bytes),
//        count of value files; of each: number, bytes of the items that the table points to
//     8  one removed table: number
//     9  everything up to this sequence is in tables
//    10  the oldest WAL segment that holds anything newer; 0: no segment was ever written
//    12  one range delete: lower full key (bytes), upper full key (bytes), sequence
//    11  one dropped namespace: id. Its value files, and tables that held nothing else, are
//        removed by the same edit; other tables of level 0 no longer point into them
//    13  the time that expiry has reached (varint, zigzag)
//    14  one change of a retention rule, at that time: prefix (bytes), retention + 1 in ns or 0 for
//        none
//    15  one scope of the retention rules: prefix (bytes), retention + 1 or 0, floor, epoch; in a
//        manifest's first edit alone
//    16  one erased range whose bytes may still be somewhere: as 12, which hides it
//    17  of erased ranges up to this sequence nothing is left
//    18  one value file in which items that nothing points to may be overwritten: number
//    19  everything of a namespace before a time was given up: namespace id, time (varint, zigzag)
//    20  latest time of a key in the value file that was added last (varint, zigzag); not there:
//        not known
//    21  life class of the table that was added last (1 byte, expiry/retention_rules.h); not
//        there: 0
//    22  how long processes have held what a leap of the clock let expire, in ns; 0: nothing
//        is held
//
// An unknown tag, level, kind, placement or codec comes from a newer version and is refused.
// Limits: names kNamespaceNameMaxBytes, keys kKeySizeMaxBytes and the prefix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/range_deletes.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "expiry/retention_rules.h"
#include "table/table_metadata.h"

namespace edgecase::engine {

inline constexpr std::uint32_t kManifestFormatVersion = 1;

struct VersionEdit {
  std::optional<std::uint32_t> format_version;
  std::optional<FileNumber> file_number_limit;
  std::optional<NamespaceId> namespace_id_limit;
  std::vector<NamespaceInfo> namespaces;
  std::vector<NamespaceId> dropped_namespaces;
  std::vector<ValueFileMetadata> added_value_files;
  std::vector<FileNumber> removed_value_files;
  std::vector<FileNumber> blanked_value_files;
  std::vector<TableMetadata> added_tables;
  std::vector<FileNumber> removed_tables;
  std::vector<RangeDelete> range_deletes;
  std::vector<RangeDelete> erasures;  // that are pending
  std::optional<SequenceNumber> erased_sequence;
  std::optional<SequenceNumber> flushed_sequence;
  std::optional<std::uint64_t> oldest_wal_segment;
  std::optional<std::int64_t> expiry_mark_ns;
  std::optional<std::uint64_t> held_ns;
  std::vector<RetentionRule> rule_changes;
  std::vector<ScopeState> scopes;
  std::vector<GivenUp> given_up;

  Bytes encode() const;
  // Corruption, or Unsupported for what only a newer version writes.
  static Result<VersionEdit> decode(ByteView encoded);
};

// CURRENT.copy stands in where CURRENT is lost.

// The manifest's number. `damage`: what is wrong with CURRENT, where the copy stands in. Errors:
// those of CURRENT, NotFound and Corruption among them.
Result<std::uint64_t> find_current(FileSystem& file_system, const std::string& metadata_directory,
                                   Status& damage);

// The same of one of the two. Errors: NotFound, Corruption.
Result<std::uint64_t> read_current(FileSystem& file_system, const std::string& path);

// Durable on return.
Status write_current(FileSystem& file_system, const std::string& metadata_directory,
                     std::uint64_t number);

}  // namespace edgecase::engine
