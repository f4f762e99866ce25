// Subcommands under a name, as in `edgecase token create`. Inside cli/commands only.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "action.h"
#include "daemon_client.h"
#include "help_text.h"

namespace edgecase::cli {

// Declared with its purpose, its example and the options of a connection; `arguments` have a
// `connection`, and `run` is given them.
template <typename Arguments>
CLI::App* add_subcommand(CLI::App& parent, Action& action, const char* name, const char* purpose,
                         const char* example, const std::shared_ptr<Arguments>& arguments,
                         int (*run)(const Arguments&)) {
  CLI::App* command = parent.add_subcommand(name, purpose);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({example}));
  command->callback(
      [arguments, run, &action] { action = [arguments, run] { return run(*arguments); }; });
  return command;
}

// `edgecase config storage`: whether a directory will do for the values, and moving them there.
void add_config_storage(CLI::App& config, Action& action);

}  // namespace edgecase::cli
