#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands/commands.h"
#include "daemon_client.h"
#include "help_text.h"
#include "reading_output.h"
#include "selection.h"
#include "wire/routes.h"

namespace edgecase::cli {
namespace {

struct LastArguments {
  ConnectionArguments connection;
  ReadingOutput output;
  wire::SelectionTexts selection;
};

int run_last(const LastArguments& arguments) {
  const Status status = check_selection(arguments.selection);
  if (!status.ok()) return report_failure(status);
  ReadingOutput output = arguments.output;
  output.with_age = true;
  DaemonClient client(arguments.connection);
  Parameters parameters;
  append_selection(arguments.selection, parameters);
  return print_readings(client, wire::routes::kLast, std::move(parameters), output);
}

}  // namespace

void add_last_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LastArguments>();
  CLI::App* command = app.add_subcommand("last", "Print the newest reading of each series");
  add_selection(*command, arguments->selection, WithoutSelection::Everything);
  add_format_option(*command, arguments->output.format);
  add_zone_options(*command, arguments->output.zone);
  add_purpose_option(*command, arguments->output.purpose);
  add_namespace_options(*command, arguments->output.namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase last 'kitchen/*' boiler/temp"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_last(*arguments); }; });
}

}  // namespace edgecase::cli
