// Lines of "name: value", as inspect_file() answers them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edgecase/bytes.h"

namespace edgecase::engine {

void add_fact(std::string& out, std::string_view name, std::string_view value);
void add_fact(std::string& out, std::string_view name, std::uint64_t value);

// Hexadecimal digits; a long key is cut and ends in "...".
std::string shown_key(ByteView key);

}  // namespace edgecase::engine
