// The declared command line as data: what completion and manual pages are made of, so that they
// cannot say anything else than --help does.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace edgecase::cli {

struct CommandOption {
  std::vector<std::string> names;    // "-o", "--output"; of a positional its one word, "selector"
  std::string value;                 // as help names it, "FILE"; empty: a flag
  std::vector<std::string> choices;  // all values there are; empty: any
  std::string help;                  // lines
  std::string group;                 // heading in --help
  bool positional = false;
  bool required = false;
  bool repeated = false;  // a positional that takes several words
  bool optional = false;  // the value may be left out

  // The value is the path of a file or directory.
  bool is_path() const { return value == "FILE" || value == "DIR"; }
  friend bool operator==(const CommandOption&, const CommandOption&) = default;
};

struct Command {
  std::string path;  // "edgecase config show"
  std::string summary;
  std::string notes;                  // lines that help ends with, before the examples
  std::vector<std::string> examples;  // command lines
  std::vector<CommandOption> options;
  std::vector<Command> commands;

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

// Hidden commands and options are left out, and so is what every command has: --help.
Command read_command_tree(const CLI::App& app);

// The tree in the order of --help: each command before those inside it.
std::vector<const Command*> all_commands(const Command& root);

// Scripts that teach a shell to complete `edgecase` and `edgecased`: commands, options, choices,
// files. They hold everything themselves: nothing runs while the user types.

std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

// The manual pages in roff, made of the declared commands and the table of settings: they cannot
// disagree with --help and `config example`.
std::string edgecase_page(const Command& root);   // edgecase(1)
std::string edgecased_page(const Command& root);  // edgecased(8)
std::string configuration_page();                 // edgecase.toml(5)

}  // namespace edgecase::cli
