// What a repair lost, in words: of which devices and sensors, of which time. Offline, for
// `edgecase check --repair`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "edgecase/store_check.h"

namespace edgecase::app {

// A line for each series, or for each device where no more is told. Names are those of the catalog
// that can be read; numbers where it cannot. What is no reading is left out.
std::vector<std::string> lost_readings(FileSystem& file_system, const Options& options,
                                       std::span<const LostEntries> lost);

}  // namespace edgecase::app
