// Compares the drives with the manifest: files that are missing or cut short, and files that nobody
// names any more. Stateless; does I/O.
#pragma once

#include <string>
#include <vector>

#include "crypto/key_ring.h"
#include "edgecase/engine.h"
#include "file/file_remover.h"
#include "version/version_set.h"

namespace edgecase::engine {

// A file that the manifest names and that is not there, or not whole.
struct LostFile {
  FileLayer layer = FileLayer::Values;
  FileNumber number = 0;
  std::string problem;
};

// The lost files on one of the drives (metadata tables lie on that of the metadata). Nothing but
// their keys is lost; reads of these say so. Errors: IoError, Unavailable, of that drive.
Result<std::vector<LostFile>> find_lost_files(FileSystem& file_system, const Options& options,
                                              const Version& version, Placement placement);

// Removes what no manifest names from one directory, overwritten where it may hold what was erased.
// What resists stays: it does no harm, and the next open tries again.
void remove_orphans(FileSystem& file_system, const std::string& directory,
                    const VersionSet& versions, KeyRing* keys, FileRemover& remover);

}  // namespace edgecase::engine
