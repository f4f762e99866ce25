// Tells people who start the daemon what to do: remedies of errors, and the directories of the
// store, which are made and tried before the engine opens them.
#pragma once

#include <string>
#include <string_view>

#include "config/configuration.h"
#include "edgecase/stats.h"
#include "edgecase/status.h"

namespace edgecase::app {

// Adds the remedy to an error: what its reader can do about it.

// One line: what went wrong and, unless the message says so already, "; to do: " and what helps.
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
