// Zeros where something lay that is to be on no drive any more.
#pragma once

#include <string>

#include "edgecase/file_system.h"

namespace edgecase::engine {

// Over a stretch of the file; not synced.
Status write_zeros(LogFile& file, std::uint64_t offset, std::uint64_t bytes);

// Over all of it, synced. Answers how many; NotFound when there is no such file.
Result<std::uint64_t> overwrite_file(FileSystem& file_system, const std::string& path);

}  // namespace edgecase::engine
