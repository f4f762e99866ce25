// Faults of a store, in words, and what helps: faults of its audit log, readings that were lost,
// remedies of errors; and its directories, which are made and tried before the engine opens
// them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "config/configuration.h"
#include "edgecase/engine.h"
#include "edgecase/stats.h"
#include "edgecase/status.h"
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

// An error with its remedy, what its reader can do about it. One line: what went wrong and, unless
// the message says so already, "; to do: " and what helps.
std::string with_remedy(const Status& failure);

// Which drive takes no writes, why, and what helps; empty when both take them. Where both fail, the
// metadata drive's: without that one nothing is taken at all.
std::string drive_trouble(const Stats& stats);

// The two directories of the store, before the engine opens them: made where their parent exists,
// and tried, so that what is wrong is told in words of the configuration. The values directory of a
// store that is there already is left as it is: its drive may not be mounted yet.

inline constexpr unsigned kDirectoryMode = 0750;

// InvalidArgument, as load_configuration() words it: a missing parent, no directory, not writable,
// the same directory by two names.
Status prepare_directories(const config::Configuration& configuration);

}  // namespace edgecase::app
