#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands/commands.h"
#include "daemon_client.h"
#include "help_text.h"
#include "json_text.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "wire/routes.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct WhereArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  wire::SelectionTexts selection;
  bool json = false;
};

int run_where(const WhereArguments& arguments) {
  const Status checked = check_selection(arguments.selection, WithoutSelection::Refused);
  if (!checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  Parameters parameters{{"ns", arguments.namespaces.parameter()}};
  append_selection(arguments.selection, parameters);
  const Result<std::string> body = client.get_small(path_with(wire::routes::kWhere, parameters));
  if (!body.ok()) return report_failure(client, parameters, body.status());
  if (arguments.json) {
    write_out(stdout, *body + (body->ends_with('\n') ? "" : "\n"));
    return finish_stdout();
  }
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("files"))
    return report_failure(io_error("the daemon's answer is no list of files"));
  Table table({{"DRIVE"},
               {"WHERE"},
               {"LAYER"},
               {"FILE"},
               {"BYTES", Align::Right},
               {"OF", Align::Right},
               {"LOCATIONS"}},
              stdout);
  for (const nlohmann::json& file : document["files"]) {
    table.row({text_field(file, "drive"), or_dash(text_field(file, "drive_location")),
               text_field(file, "layer"),
               text_field(file, "directory") + "/" + text_field(file, "file"),
               wire::format_size(count_field(file, "bytes")),
               wire::format_size(count_field(file, "file_bytes")),
               or_dash(words_field(file, "locations"))});
  }
  table.flush();
  const std::uint64_t window_bytes = count_field(document, "window_bytes");
  write_out(stdout, count_text(count_field(document, "series")) + " series hold " +
                        wire::format_size(count_field(document, "bytes")) + " in " +
                        count_text(document["files"].size()) + " files" +
                        (window_bytes == 0
                             ? "\n"
                             : ", " + wire::format_size(window_bytes) + " windows of tiers\n"));
  return finish_stdout();
}

}  // namespace

void add_where_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<WhereArguments>();
  CLI::App* command = app.add_subcommand(
      "where", "Which files on which drive hold it, where that is, and how many bytes");
  add_selection(*command, arguments->selection, WithoutSelection::Refused);
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase where 'kitchen/*'"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_where(*arguments); }; });
}

}  // namespace edgecase::cli
