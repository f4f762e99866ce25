// `edgecase config storage`: whether a directory will do for the values, and moving them there.
#pragma once

#include "action.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

// Below `edgecase config`.
void add_config_storage(CLI::App& config, Action& action);

}  // namespace edgecase::cli
