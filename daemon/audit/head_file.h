// The head of the audit log beside the values, on the other drive than the log itself: who cuts the
// log's end off has to change both. A line of text and its SHA-256, replaced atomically.
#pragma once

#include <optional>
#include <string>

#include "audit/record.h"
#include "edgecase/file_system.h"

namespace edgecase::audit {

// In the values directory; the engine leaves names alone that are not its own.
inline constexpr char kHeadFileName[] = "AUDIT-HEAD";

// Durable on return.
Status write_head_file(FileSystem& file_system, const std::string& directory, const Mark& head);
// nullopt: there is none. Corruption: it is not what was written.
Result<std::optional<Mark>> read_head_file(FileSystem& file_system, const std::string& directory);

}  // namespace edgecase::audit
