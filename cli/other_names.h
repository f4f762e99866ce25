// Other names of commands and options: those that are near a mistyped one, and those that the same
// thing has in other programs. For "did you mean" and mended_line.cc. Values without state.
#pragma once

#include <string>
#include <string_view>

#include "typed_line.h"

namespace edgecase::cli {

// The first word that looks like an option and is none of the command's, and the one that it was
// meant to be. Empty: all are; none is near.
struct UnknownOption {
  std::string name, near;
};
UnknownOption unknown_option(const Command& root, const TypedWords& words);
// The option that `word` was meant to be among those of the command, as "--since"; empty: none.
std::string nearest_option(const Command& command, std::string_view word);
// The command inside `command` that `word` was meant to be; empty: none.
std::string nearest_command(const Command& command, std::string_view word);

}  // namespace edgecase::cli
