// The command line as a whole: what is common to every command.
//
// A command is a function that declares itself to the application: `void add_x_command(CLI::App&
// app, Action& action)` adds a subcommand whose callback sets `action`, which runs when the
// declarations are gone: a daemon does not carry them along. main.cc lists the commands.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace edgecase::cli {

// The command that a command line asks for, ready to run. Returns the exit code.
using Action = std::function<int()>;

using AddCommand = void (*)(CLI::App& app, Action& action);

// Parses `arguments` (without the program's name) and runs the command they name. Returns the exit
// code: 2 with one line on stderr for wrong usage; help and version go to stdout.
int run_application(std::span<const AddCommand> commands, std::vector<std::string> arguments);

// The same for main(): called as `edgecased` it is `edgecase serve`.
int run_application(std::span<const AddCommand> commands, int argument_count, char** arguments);

// The end of every help: an example, then the exit codes (CONTRACT section 1).
inline constexpr std::string_view kExitCodesText =
    "Exit codes: 0 ok, 1 failed, 2 wrong usage or configuration, 3 not found, 4 not allowed,\n"
    "            5 daemon not reachable, 6 partly done, 7 corruption found";

// For CLI::App::footer(). Each example is one command line.
inline std::string help_footer(std::initializer_list<std::string_view> examples) {
  std::string text = examples.size() == 1 ? "Example:\n" : "Examples:\n";
  for (const std::string_view example : examples) {
    text += "  ";
    text += example;
    text += '\n';
  }
  text += '\n';
  text += kExitCodesText;
  return text;
}

}  // namespace edgecase::cli
