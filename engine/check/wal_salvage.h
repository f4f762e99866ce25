// Reads of a damaged log what can be read. Used by one thread.
#pragma once

#include <functional>

#include "check/findings.h"
#include "check/store_files.h"
#include "log/log_reader.h"

namespace edgecase::engine {

// Ok, or Corruption: an entry of it is none, or of a namespace that cannot be.
Status check_batch(ByteView batch);

// Calls `apply` with every batch newer than `flushed`, in order; it answers the sequence of its
// last entry, or Corruption for bytes that are no batch. Gaps and damage are losses. Answers the
// last sequence that was read.
Result<SequenceNumber> salvage_wal(
    FileSystem& file_system, const StoreFiles& files, SequenceNumber flushed, Findings& findings,
    const std::function<Result<SequenceNumber>(const LogRecord& record)>& apply);

// The sequence before the log's last records without a gap, for a store of which nobody knows what
// is in tables. Tables that hold something of a sequence need not hold all before it: a flush that
// was cut short leaves files of one namespace alone. A gap above `in_tables`, the newest that is in
// one, counts as none: it is a loss.
Result<SequenceNumber> find_wal_begin(FileSystem& file_system, const StoreFiles& files,
                                      SequenceNumber in_tables);

}  // namespace edgecase::engine
