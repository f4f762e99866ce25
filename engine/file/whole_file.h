// Small files that are read and replaced whole: CURRENT, IDENTITY.
#pragma once

#include <string>

#include "edgecase/file_system.h"

namespace edgecase::engine {

// Drive: not from what the system has in memory of the file, where it can.
enum class ReadSource : unsigned char { Any, Drive };

// Errors: NotFound; Corruption when it is longer than `size_max`; IoError.
Result<Bytes> read_whole_file(FileSystem& file_system, const std::string& path,
                              std::size_t size_max, ReadSource source = ReadSource::Any);

// `path` holds `content` or what it held before, also after a power cut: writes `new_path`, syncs
// it, renames it to `path`, syncs `directory`, the parent of both.
Status replace_whole_file(FileSystem& file_system, const std::string& directory,
                          const std::string& new_path, const std::string& path, ByteView content);

}  // namespace edgecase::engine
