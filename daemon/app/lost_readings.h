// Names lost readings in words: device, sensor and time. Used offline by `edgecase check --repair`,
// and by a daemon that comes to damaged files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/store_check.h"
#include "observe/logger.h"

namespace edgecase::app {

// A line for each series, or for each device where no more is told. Names are those of the catalog
// that can be read; numbers where it cannot. What is no reading is left out.
std::vector<std::string> lost_readings(FileSystem& file_system, const Options& options,
                                       std::span<const LostEntries> lost);

// At a start: names that were lost; devices and times that went with damaged files.
void tell_recovered(const catalog::Catalog& catalog, observe::Logger& logger);
void tell_damage(const Engine& engine, const catalog::Catalog& catalog, observe::Logger& logger);

}  // namespace edgecase::app
