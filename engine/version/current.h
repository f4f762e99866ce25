// CURRENT, which names the manifest, and CURRENT.copy beside it, which stands in where that is
// lost.
#pragma once

#include <cstdint>
#include <string>

#include "edgecase/file_system.h"

namespace edgecase::engine {

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
