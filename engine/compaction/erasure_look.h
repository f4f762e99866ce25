// Whether a value file holds something of erased ranges: what lives in it and what nothing points
// to any more. Reads all of it, up to the first such item.
#pragma once

#include <span>

#include "base/range_deletes.h"
#include "base/store_id.h"
#include "edgecase/file_system.h"

namespace edgecase::engine {

class KeyRing;

// `ranges` are disjoint, in key order. An item that reaches over one counts when it has an entry of
// it. Corruption: it cannot be told.
Result<bool> holds_any_of(FileSystem& file_system, const std::string& path, const StoreId& store_id,
                          std::uint64_t file_number, std::span<const RangeDelete> ranges,
                          KeyRing* keys = nullptr);

}  // namespace edgecase::engine
