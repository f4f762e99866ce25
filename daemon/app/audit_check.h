// The audit log of a store that nobody has open: its chain of hashes, and its head, which is kept
// on both drives. Offline, for `edgecase check`.
#pragma once

#include <string>
#include <vector>

#include "edgecase/store_check.h"

namespace edgecase::app {

// A line for each fault; none: it is whole, or there is no log. Holds the log in memory. Errors as
// of read_offline(), but for a store without a log.
Result<std::vector<std::string>> audit_faults(FileSystem& file_system, const Options& options);

}  // namespace edgecase::app
