// One key in one table: what a get does there.
#pragma once

#include "base/entry.h"
#include "table/table_files.h"
#include "table/table_metadata.h"

namespace edgecase::engine {

// Whether the table has an entry of `full_key`, delete or put, which lies within its bounds; fills
// in `entry` if so. Reads at most one block of metadata and one item, or one page of it.
Result<bool> find_in_table(TableFiles& files, const TableMetadata& table, ByteView full_key,
                           bool fill_cache, FoundEntry& entry);

}  // namespace edgecase::engine
