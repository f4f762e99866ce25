// The part of inspect_file() for files that are no tables: logs, identities, key rings. Reads only.
#pragma once

#include <string>

#include "crypto/key_ring.h"
#include "edgecase/file_system.h"

namespace edgecase::engine {

Result<std::string> inspect_identity(FileSystem& file_system, const std::string& path);
Result<std::string> inspect_current(FileSystem& file_system, const std::string& path);
// A manifest or a WAL segment: whichever the head says.
Result<std::string> inspect_log(FileSystem& file_system, const std::string& path, KeyRing* keys);
// Needs no key: what lies beside the keys.
Result<std::string> inspect_key_ring(FileSystem& file_system, const std::string& path);

}  // namespace edgecase::engine
