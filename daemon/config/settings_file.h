// The configuration file, in TOML. Internal to config/.
#pragma once

#include <string>
#include <string_view>

#include "config/configuration.h"
#include "edgecase/status.h"

namespace edgecase::config {

// Finds characters that no TOML has, before its parser is asked, whose behaviour is not defined for
// some of them. Internal to config/.

// InvalidArgument with the place, `name` being the file's: a control character anywhere, or one
// beyond ASCII outside of quotes and comments.
Status check_toml_characters(std::string_view text, const std::string& name);

// Applies `text` (the contents of the file `name`) to `configuration`. Errors: see
// configuration.h.
Status apply_file(std::string_view text, const std::string& name, Configuration& configuration);

}  // namespace edgecase::config
