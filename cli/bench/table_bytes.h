// What a stopped daemon's store takes on both drives.
#pragma once

#include <cstdint>

#include "bench/private_directory.h"
#include "edgecase/result.h"

namespace edgecase::cli::bench {

// Of its tables once everything is in them, write-ahead log aside. Errors: the engine's.
Result<std::uint64_t> table_bytes(const StoreDirectories& directories);

}  // namespace edgecase::cli::bench
