// Opening, first part: from two directories to the parts of a store that is locked and understood.
// A store that is not there is created, if it may be. Nothing of one that is there is changed.
//
// A store exists once CURRENT does, the last thing that creation writes. Before that, a creation
// that was cut short is taken up again, if all that it left is there and nothing else.
//
// What follows: EngineImpl makes the owners, and log_recovery.h reads the log. Stateless; the
// caller's thread; does I/O.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/identity.h"
#include "core/named_files.h"
#include "crypto/key_ring.h"
#include "edgecase/options.h"
#include "version/version_set.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
