// The command line as a whole: what is common to every command.
//
// A command is a function that declares itself to the application: `void add_x_command(CLI::App&
// app, Action& action)` adds a subcommand whose callback sets `action`, which runs when the
// declarations are gone: a daemon does not carry them along. All commands are declared below.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "daemon_client.h"

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

// The end of every help: an example, then the exit codes.
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

// Every command of the executable. Each is declared and run in <name>_command.cc; some stand by
// those that do the like: `last`, `get`, `tail` in query, `import` in write, `where`, `device` in
// series, `backup` and `restore` in export, `inspect` in check, `config` and `version` in serve,
// `mqtt test` and `influx test` in rules, `namespace` and `token` in admin_commands.cc,
// `completion` in manual/manual_pages.cc.

namespace CLI {
class App;
}

namespace edgecase::cli {

namespace bench {
struct PeerProgram;
}

void add_serve_command(CLI::App& app, Action& action);
void add_status_command(CLI::App& app, Action& action);
void add_write_command(CLI::App& app, Action& action);
void add_query_command(CLI::App& app, Action& action);
void add_last_command(CLI::App& app, Action& action);
void add_tail_command(CLI::App& app, Action& action);
void add_get_command(CLI::App& app, Action& action);
void add_series_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);
void add_export_command(CLI::App& app, Action& action);
void add_plot_command(CLI::App& app, Action& action);
void add_import_command(CLI::App& app, Action& action);
void add_backup_command(CLI::App& app, Action& action);
void add_restore_command(CLI::App& app, Action& action);
void add_namespace_command(CLI::App& app, Action& action);
void add_forward_command(CLI::App& app, Action& action);
void add_retention_command(CLI::App& app, Action& action);
void add_erase_command(CLI::App& app, Action& action);
void add_where_command(CLI::App& app, Action& action);
void add_device_command(CLI::App& app, Action& action);
void add_report_command(CLI::App& app, Action& action);
void add_audit_command(CLI::App& app, Action& action);
void add_token_command(CLI::App& app, Action& action);
void add_check_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_mqtt_command(CLI::App& app, Action& action);
void add_influx_command(CLI::App& app, Action& action);
void add_config_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
// The same with peers at hand: that of edgecase-bench-peers. `peers` outlives the action.
void add_bench_command_with(const bench::PeerProgram& peers, CLI::App& app, Action& action);
void add_completion_command(CLI::App& app, Action& action);
void add_version_command(CLI::App& app, Action& action);
void add_manual_command(CLI::App& app, Action& action);  // not listed

// All of them, in the order that `edgecase --help` shows.
inline constexpr AddCommand kAllCommands[] = {
    // clang-format off: a line each
    add_serve_command,     add_status_command,  add_write_command,      add_query_command,
    add_last_command,      add_tail_command,    add_get_command,        add_plot_command,
    add_series_command,    add_devices_command, add_export_command,     add_import_command,
    add_backup_command,    add_restore_command, add_namespace_command,  add_device_command,
    add_retention_command, add_erase_command,   add_where_command,      add_token_command,
    add_audit_command,     add_report_command,  add_mqtt_command,       add_config_command,
    add_forward_command,   add_influx_command,  add_check_command,      add_inspect_command,
    add_bench_command,     add_version_command, add_completion_command, add_manual_command,
    // clang-format on
};

// A subcommand under a name, as in `edgecase token create`. Declared with its purpose, its example
// and the options of a connection; `arguments` have a `connection`, and `run` is given them.
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
