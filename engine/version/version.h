// Version: the files that make up the store at one moment. Immutable and shared: whoever holds one
// may read its files; none of them is unlinked before the last holder has let go (VersionSet).
//
// Tables form *runs*: tables whose items' key ranges are disjoint, in key order. At level 0 every
// table that a flush wrote is a run of its own, of all namespaces. From level 1 down each namespace
// has a tree of its own (Iso-KVSSD): a list of runs. A level says how many merges the data of a run
// went through; it says nothing of age. The one with the larger sequence is the newer of two
// entries of a key, wherever they lie.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/shared_map.h"
#include "edgecase/engine.h"
#include "table/table_metadata.h"
#include "version/manifest.h"

namespace edgecase::engine {

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
