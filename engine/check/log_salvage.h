// Reads what can still be read of damaged logs, for a repair: of manifests, where no whole one is
// left, and of the write-ahead log, as a start would. Used by one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/findings.h"
#include "check/store_files.h"
#include "edgecase/bytes.h"
#include "version/version.h"

namespace edgecase::engine {

// What manifests still tell of a store without a whole one: its namespaces, and what is gone for
// good. No list of files is taken from them: files that are there tell of themselves.
struct ManifestSalvage {
  std::string path;  // of the newest one of which a state could be read; empty: there is none
  std::vector<NamespaceInfo> namespaces;  // by id
  NamespaceId namespace_id_limit = 1;     // those below that are not among them were dropped
  FileNumber file_number_limit = 1;
  SequenceNumber flushed_sequence = 0;  // at least that was
  std::vector<RangeDelete> range_deletes, erasures;
  // Without rules: which of them still hold cannot be told, and what one had let expire by
  // `expiry_mark_ns` is gone whatever became of it.
  RetentionRules retention;
  std::int64_t expiry_mark_ns = 0;
};

// Every field is at most what held last: of what was changed after the damage nothing is known.
ManifestSalvage salvage_manifests(FileSystem& file_system, const StoreFiles& files);

// The sequence of a batch's first entry, and its bytes, which are a batch.
using SalvagedBatch = std::function<Status(SequenceNumber first, ByteView batch)>;

// Calls `apply` with every batch newer than `flushed`, in order, as a start would. Gaps, damage and
// segments that are missing from `oldest_needed` on (0: not known) are losses. Answers the last
// sequence that was read.
Result<SequenceNumber> salvage_wal(FileSystem& file_system, const StoreFiles& files,
                                   std::uint64_t oldest_needed, SequenceNumber flushed,
                                   Findings& findings, const SalvagedBatch& apply);

// The sequence before the log's last records without a gap, for a store of which nobody knows what
// is in tables. Tables that hold something of a sequence need not hold all before it: a flush that
// was cut short leaves files of one namespace alone. A gap above `in_tables`, the newest that is in
// one, counts as none: it is a loss.
Result<SequenceNumber> find_wal_begin(FileSystem& file_system, const StoreFiles& files,
                                      SequenceNumber in_tables);

}  // namespace edgecase::engine
