// Version: the files that make up the store at one moment. Immutable and shared: whoever holds one
// may read its files; none of them is unlinked before the last holder has let go (VersionSet).
//
// Tables form *runs*: tables whose items' key ranges are disjoint, in key order. At level 0 every
// table that a flush wrote is a run of its own, of all namespaces. From level 1 down each namespace
// has a tree of its own (Iso-KVSSD): a list of runs. A level says how many merges the data of a run
// went through; it says nothing of age. The one with the larger sequence is the newer of two
// entries of a key, wherever they lie.
//
// Edits, as the manifest has them (manifest.cc), lead from one version to the next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/range_deletes.h"
#include "base/shared_map.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "expiry/retention_rules.h"
#include "table/table_metadata.h"

namespace edgecase::engine {

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

using TablePointer = std::shared_ptr<const TableMetadata>;

struct Run {
  FileNumber number = 0;
  std::uint8_t level = 0;
  TableKind kind = TableKind::Groups;
  LifeClass life = 0;
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
  std::uint64_t item_bytes = 0;
  std::vector<TablePointer> tables;  // in key order

  // The only table that may hold the key; null when there is none.
  const TablePointer* find(ByteView full_key) const;
};

// Runs of one namespace, the largest sequence first.
using Tree = std::vector<Run>;

struct Version {
  std::vector<TablePointer> tables;  // all of them, the largest sequence first
  SharedMap<ValueFileMetadata> value_files;

  // The same tables, as reads want them.
  std::vector<TablePointer> level0;  // the largest sequence first
  std::map<NamespaceId, Tree> trees;
  // Disjoint, in key order; none that nothing older lies under. And what they answer: null for
  // none.
  std::vector<RangeDelete> range_delete_list;
  std::shared_ptr<const RangeDeletes> range_deletes;
  // Bytes of each value file that some table points to. A file without is garbage.
  SharedMap<std::uint64_t> live_bytes;
  // Tables that a version made by without_runs() leaves out.
  std::vector<TablePointer> set_apart;

  // Bytes of all value files.
  std::uint64_t value_bytes() const;
  // What the lists take in memory: next to nothing, but of a store of terabytes megabytes.
  std::uint64_t memory_bytes() const;
};

// More range deletes than these wait for merges: no others are taken. One for each
// kMemoryOfRangeDeleteBytes of a store's memory, within bounds.
inline constexpr std::size_t kRangeDeletesMaxLeast = 8'192;
inline constexpr std::size_t kRangeDeletesMaxMost = 32'768;
inline constexpr std::uint64_t kMemoryOfRangeDeleteBytes = 8'192;
constexpr std::size_t range_deletes_max(std::uint64_t memory_limit_bytes) {
  const std::uint64_t most = memory_limit_bytes / kMemoryOfRangeDeleteBytes;
  return std::clamp<std::uint64_t>(most, kRangeDeletesMaxLeast, kRangeDeletesMaxMost);
}

// What merges may choose from, where files are damaged: the same version without the runs that have
// a table which is one of `lost`, or points into one. They stay as they are, and what they may hold
// counts wherever it is asked whether something older lies elsewhere.
Version without_runs(const Version& version, const std::set<FileNumber>& lost);
// The same without these tables alone, for merges whose output stays in the run of its inputs.
Version without_tables(const Version& version, const std::set<FileNumber>& lost);
// Whether a table is one of `lost`, or points into one.
bool is_damaged(const TableMetadata& table, const std::set<FileNumber>& lost);

// Everything the manifest knows. A copy is cheap enough to be made for each edit.
struct VersionState {
  std::shared_ptr<const Version> version = std::make_shared<const Version>();
  std::vector<NamespaceInfo> namespaces;  // by id
  FileNumber file_number_limit = 1;
  NamespaceId namespace_id_limit = 1;
  SequenceNumber flushed_sequence = 0;
  std::uint64_t oldest_wal_segment = 0;
  // Erased ranges with bytes somewhere: disjoint, in key order.
  std::vector<RangeDelete> erasures;
  // Null: there was never a rule.
  std::shared_ptr<const RetentionRules> retention;
  std::int64_t expiry_mark_ns = kNoMarkNs;  // the latest time that is known
  std::uint64_t held_ns = 0;                // VersionEdit

  // Corruption when the edit does not fit: a file added twice, or removed and not there, ...
  Status apply(const VersionEdit& edit);
  // The edit that makes this state from nothing.
  VersionEdit snapshot() const;

 private:
  friend class VersionReplay;
  Status apply_names(const VersionEdit& edit);
  Status apply_marks(const VersionEdit& edit);
};

// Edits one after the other, of which nobody wants but the last state: nothing is copied for each,
// nor are tables arranged. After an error neither is to be called again.
class VersionReplay {
 public:
  // Errors: as those of VersionState, some of them not before finish().
  Status apply(const VersionEdit& edit);
  Result<VersionState> finish();

 private:
  VersionState state_;  // but for its version
  Version version_;
  bool is_arranged_ = true;
};

// A file that no version names any more, or soon none.
struct ObsoleteFile {
  enum class Kind : unsigned char { Table, Values };
  Kind kind = Kind::Table;
  Placement placement = Placement::Metadata;  // of value files
  FileNumber number = 0;
  NamespaceId namespace_id = 0;  // of value files
  Bytes smallest = {};           // full keys of a table
  Bytes largest = {};
};

// A flush or a merge that ran beside the drop of a namespace: takes out of its edit what is of a
// dropped one, and the removal of what the drop removed already. Answers the files that nobody will
// ever name.
std::vector<ObsoleteFile> withdraw_dropped(const VersionState& state, VersionEdit& edit);

// Completes an edit that replaces tables: removes every value file to which nothing will point.
// Tables that others add meanwhile must not point into files of `before`.
void remove_unused_value_files(const Version& before, VersionEdit& edit);

}  // namespace edgecase::engine
