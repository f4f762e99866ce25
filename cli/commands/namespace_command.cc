#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "application.h"
#include "commands/commands.h"
#include "daemon_client.h"
#include "json_text.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"
#include "wire/names.h"

namespace edgecase::cli {
namespace {

struct NamespaceListArguments {
  ConnectionArguments connection;
  bool json = false;
};

struct NamespaceCreateArguments {
  ConnectionArguments connection;
  std::string name;
};

struct NamespaceDropArguments {
  ConnectionArguments connection;
  std::string name;
  bool yes = false;
};

int run_list(const NamespaceListArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.get_small(wire::routes::kNamespaces);
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) {
    write_out(stdout, *body + (body->ends_with('\n') ? "" : "\n"));
    return finish_stdout();
  }
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("namespaces")) {
    return report_failure(io_error("the daemon's answer is no list"));
  }
  for (const nlohmann::json& name : document["namespaces"]) {
    if (name.is_string()) write_out(stdout, printable(name.get<std::string>()) + "\n");
  }
  return finish_stdout();
}

int run_create(const NamespaceCreateArguments& arguments) {
  const Status checked = wire::check_name("namespace", arguments.name);
  if (!checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.post(
      path_with(wire::routes::kNamespaces, {{"name", arguments.name}}), "", "text/plain");
  return body.ok() ? 0 : report_failure(body.status());
}

int run_drop(const NamespaceDropArguments& arguments) {
  const Status checked = wire::check_name("namespace", arguments.name);
  if (!checked.ok()) return report_failure(checked);
  const std::string what = "this drops namespace " + arguments.name + " with everything in it";
  if (!confirmed(what, arguments.yes, arguments.name)) return wire::kExitUsage;
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.remove(path_with(wire::routes::kNamespaces, {{"name", arguments.name}}));
  return body.ok() ? 0 : report_failure(body.status());
}

}  // namespace

void add_namespace_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("namespace", "List, create and drop namespaces");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase namespace create plant"}));

  auto list_arguments = std::make_shared<NamespaceListArguments>();
  CLI::App* list = command->add_subcommand("list", "List namespaces");
  list->add_flag("--json", list_arguments->json, "One JSON document. Default: text for people");
  add_connection_options(*list, list_arguments->connection);
  list->footer(help_footer({"edgecase namespace list"}));
  list->callback([list_arguments, &action] {
    action = [list_arguments] { return run_list(*list_arguments); };
  });

  auto create_arguments = std::make_shared<NamespaceCreateArguments>();
  CLI::App* create =
      command->add_subcommand("create", "Create a namespace; fine if there is one of that name");
  create->add_option("name", create_arguments->name, "1 to 128 bytes, without /")->required();
  add_connection_options(*create, create_arguments->connection);
  create->footer(help_footer({"edgecase namespace create plant"}));
  create->callback([create_arguments, &action] {
    action = [create_arguments] { return run_create(*create_arguments); };
  });

  auto drop_arguments = std::make_shared<NamespaceDropArguments>();
  CLI::App* drop = command->add_subcommand(
      "drop", "Drop a namespace with everything in it; it cannot be brought back");
  drop->add_option("name", drop_arguments->name, "As in `namespace list`")->required();
  drop->add_flag("--yes", drop_arguments->yes, "Do not ask");
  add_connection_options(*drop, drop_arguments->connection);
  drop->footer(help_footer({"edgecase namespace drop plant --yes"}));
  drop->callback([drop_arguments, &action] {
    action = [drop_arguments] { return run_drop(*drop_arguments); };
  });
}

}  // namespace edgecase::cli
