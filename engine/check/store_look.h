// One whole look at a store: what check_store() reports and repair_store() builds on. Used by one
// thread.
#pragma once

#include <set>

#include "check/manifest_look.h"
#include "check/store_files.h"

namespace edgecase::engine {

struct StoreLook {
  StoreFiles files;
  ManifestLook manifest;  // of the one that CURRENT names, when it can be found
  std::uint64_t manifest_number = 0;
  bool manifest_is_whole = false;  // if not, only the namespaces of `manifest` mean anything
  bool wal_is_whole = false;
  std::set<FileNumber> damaged_values;
  std::set<FileNumber> damaged_tables;
};

// Errors: as check_store().
Result<StoreLook> look_at_store(FileSystem& file_system, const Options& options,
                                Findings& findings);

}  // namespace edgecase::engine
