// Faults of a store, in words: faults of its audit log, and readings that were lost.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/store_check.h"
#include "observe/logger.h"

namespace edgecase::app {

// The audit log of a store that nobody has open: its chain of hashes, and its head, which is kept
// on both drives. Offline, for `edgecase check`.

// A line for each fault; none: it is whole, or there is no log. Holds the log in memory. Errors as
// of read_offline(), but for a store without a log.
Result<std::vector<std::string>> audit_faults(FileSystem& file_system, const Options& options);

// Names lost readings in words: device, sensor and time. Used offline by `edgecase check --repair`,
// and by a daemon that comes to damaged files.

// A line for each series, or for each device where no more is told. Names are those of the catalog
// that can be read; numbers where it cannot. What is no reading is left out.
std::vector<std::string> lost_readings(FileSystem& file_system, const Options& options,
                                       std::span<const LostEntries> lost);

// At a start: names that were lost; devices and times that went with damaged files.
void tell_recovered(const catalog::Catalog& catalog, observe::Logger& logger);
void tell_damage(const Engine& engine, const catalog::Catalog& catalog, observe::Logger& logger);

}  // namespace edgecase::app
