// The two directories of the store, before the engine opens them: made where their parent exists,
// and tried, so that what is wrong is told in words of the configuration. The values directory of a
// store that is there already is left as it is: its drive may not be mounted yet.
#pragma once

#include "config/configuration.h"

namespace edgecase::app {

inline constexpr unsigned kDirectoryMode = 0750;

// InvalidArgument, as load_configuration() words it: a missing parent, no directory, not writable,
// the same directory by two names.
Status prepare_directories(const config::Configuration& configuration);

}  // namespace edgecase::app
