// The command line as a whole: what is common to every command.
//
// A command is a function that declares itself to the application: `void add_x_command(CLI::App&
// app, Action& action)` adds a subcommand whose callback sets `action`, which runs when the
// declarations are gone: a daemon does not carry them along. main.cc lists the commands.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "action.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

using AddCommand = void (*)(CLI::App& app, Action& action);

// Parses `arguments` (without the program's name) and runs the command they name. Returns the exit
// code: 2 with one line on stderr for wrong usage; help and version go to stdout.
int run_application(std::span<const AddCommand> commands, std::vector<std::string> arguments);

// The same for main(): called as `edgecased` it is `edgecase serve`.
int run_application(std::span<const AddCommand> commands, int argument_count, char** arguments);

}  // namespace edgecase::cli
