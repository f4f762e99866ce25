// Reads a manifest as far as either of its copies can be read. Reads only; used by one thread.
#pragma once

#include <string>
#include <vector>

#include "check/log_look.h"
#include "version/current.h"
#include "version/version.h"

namespace edgecase::engine {

struct ManifestLook {
  LogLook log;  // of the copy that counts; its status counts for all of it, its notes tell of both
  std::size_t copies = 0;  // that there should be, and that are whole
  std::size_t whole_copies = 0;
  std::uint64_t edits = 0;
  VersionState state;                     // after the last edit that could be applied
  std::vector<NamespaceInfo> namespaces;  // every one that an edit named, by id
};

ManifestLook look_at_manifest(FileSystem& file_system, const std::string& path, KeyRing* keys);

// Lines on ranges that were erased and whose bytes may still be somewhere, and on value files in
// which items are overwritten.
void erasure_lines(std::string& out, const VersionState& state);

}  // namespace edgecase::engine
