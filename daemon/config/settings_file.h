// The configuration file, in TOML. Internal to config/.
#pragma once

#include <string>
#include <string_view>

#include "config/configuration.h"

namespace edgecase::config {

// Applies `text` (the contents of the file `name`) to `configuration`. Errors: see
// configuration.h.
Status apply_file(std::string_view text, const std::string& name, Configuration& configuration);

}  // namespace edgecase::config
