// Opens a store: what lies on the drives is compared with the manifest and locked, the log is read
// and checked, then the first changes are made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/commit_leader.h"
#include "core/drives.h"
#include "core/store.h"
#include "crypto/key_ring.h"
#include "edgecase/engine.h"
#include "edgecase/options.h"
#include "file/file_remover.h"
#include "version/version_set.h"

namespace edgecase::engine {

// Compares the drives with the manifest: files that are missing or cut short, and files that nobody
// names any more. Stateless; does I/O.

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

// Opening, first part: from two directories to the parts of a store that is locked and understood.
// A store that is not there is created, if it may be. Nothing of one that is there is changed.
//
// A store exists once CURRENT does, the last thing that creation writes. Before that, a creation
// that was cut short is taken up again, if all that it left is there and nothing else.
//
// What follows: EngineImpl makes the owners, and recover_log() reads the log. Stateless; the
// caller's thread; does I/O.
struct StoreParts {
  StoreId id{};
  std::unique_ptr<FileLock> metadata_lock = nullptr;
  std::unique_ptr<FileLock> values_lock = nullptr;  // null: that drive is away
  Status values_away = {};                          // why it was opened without; Ok: it is there
  std::unique_ptr<KeyRing> keys = nullptr;          // null: not encrypted
  std::unique_ptr<VersionSet> versions = nullptr;
  std::vector<LostFile> lost = {};
};

// Errors: as Engine::open().
Result<StoreParts> open_store(const Options& options, const Environment& environment);

// Locked: another process has it open.
Result<std::unique_ptr<FileLock>> lock_directory(FileSystem& file_system,
                                                 const std::string& directory);

// Opening, second part: the log of a store is read whole and checked, then the first changes are
// made to the drives, then what no table holds comes into the memtable.
//
// Called by EngineImpl once its owners are made, on the caller's thread, before anybody writes.
// It may wait for flushes of what does not fit into memory. Stateless; does I/O.

// Fills in `event`, and adds to `damage` what of the log could not be read. An error before the
// first change leaves the store as it was.
Status recover_log(const Store& store, const StoreParts& parts, CommitLeader& leader,
                   RecoveryEvent& event, std::vector<DamagedFile>& damage);

}  // namespace edgecase::engine
