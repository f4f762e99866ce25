// One subcommand of several under a name, as in `edgecase token create`. Inside cli/commands only.
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

}  // namespace edgecase::cli
