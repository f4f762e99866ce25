// Finds characters that no TOML has, before its parser is asked, whose behaviour is not defined for
// some of them. Internal to config/.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::config {

// InvalidArgument with the place, `name` being the file's: a control character anywhere, or one
// beyond ASCII outside of quotes and comments.
Status check_toml_characters(std::string_view text, const std::string& name);

}  // namespace edgecase::config
