// StoreFiles lists the files in the two directories of a store, whatever a manifest says of them,
// and takes the store's locks. Used by one thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/store_id.h"
#include "check/findings.h"
#include "crypto/key_ring.h"
#include "edgecase/engine.h"
#include "table/table_metadata.h"

namespace edgecase::engine {

struct StoreFiles {
  std::string metadata_directory;
  std::string values_directory;
  StoreId store_id{};
  bool has_metadata_identity = false;  // a whole one
  bool has_values_identity = false;
  bool repair_begun = false;  // the marker of an unfinished repair is there
  bool has_current = false;
  std::vector<std::uint64_t> manifests;  // numbers, ascending
  std::set<FileNumber> tables;
  std::map<FileNumber, Placement> values;
  std::set<std::uint64_t> wal_slots;
  std::vector<std::unique_ptr<FileLock>> locks;
  std::unique_ptr<KeyRing> key_ring;  // null: not encrypted

  KeyRing* keys() const { return key_ring.get(); }

  std::string table_path(FileNumber number) const;
  std::string value_path(FileNumber number, Placement placement) const;
};

// Finds out which store it is, takes its locks, lists its files. Problems with identities are
// findings. Errors: as check_store(); NotAllowed without the key of an encrypted store, Corruption
// of its key ring.
Result<StoreFiles> find_store_files(FileSystem& file_system, const Options& options,
                                    Findings& findings);

}  // namespace edgecase::engine
