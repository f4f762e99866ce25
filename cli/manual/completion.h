// Scripts that teach a shell to complete `edgecase` and `edgecased`: commands, options, choices,
// files. They hold everything themselves: nothing runs while the user types.
#pragma once

#include <string>

#include "manual/command_tree.h"

namespace edgecase::cli {

std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

}  // namespace edgecase::cli
