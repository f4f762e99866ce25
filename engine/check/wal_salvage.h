// Reads of a damaged log what a start would read of it, for a repair. Used by one thread.
#pragma once

#include <functional>

#include "check/findings.h"
#include "check/store_files.h"
#include "edgecase/bytes.h"

namespace edgecase::engine {

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
