// Adds the remedy to an error: what its reader can do about it.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/stats.h"
#include "edgecase/status.h"

namespace edgecase::app {

// One line: what went wrong and, unless the message says so already, "; to do: " and what helps.
std::string with_remedy(const Status& failure);

// Which drive takes no writes, why, and what helps; empty when both take them. Where both fail, the
// metadata drive's: without that one nothing is taken at all.
std::string drive_trouble(const Stats& stats);

}  // namespace edgecase::app
