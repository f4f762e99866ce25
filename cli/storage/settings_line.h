// Changes one setting in the text of a configuration file and leaves every other byte as it is.
#pragma once

#include <string>
#include <string_view>

namespace edgecase::cli::storage {

// `line` is where the key stands (from 1; 0: nowhere), `value` becomes a TOML string. Where the key
// is new it is put below its table's head, which is put at the end when it is new, too.
std::string with_setting(std::string_view text, std::string_view table, std::string_view key,
                         std::size_t line, std::string_view value);

}  // namespace edgecase::cli::storage
