// Reads of a damaged log what can be read. Used by one thread.
#pragma once

#include <functional>

#include "check/findings.h"
#include "check/store_files.h"
#include "log/log_reader.h"

namespace edgecase::engine {

// Calls `apply` with every batch newer than `flushed`, in order; it answers the sequence of its
// last entry, or Corruption for bytes that are no batch. Gaps and damage are losses. Answers the
// last sequence that was read.
Result<SequenceNumber> salvage_wal(
    FileSystem& file_system, const StoreFiles& files, SequenceNumber flushed, Findings& findings,
    const std::function<Result<SequenceNumber>(const LogRecord& record)>& apply);

}  // namespace edgecase::engine
