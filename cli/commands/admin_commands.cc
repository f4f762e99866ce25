#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/selector.h"

namespace edgecase::cli {
namespace {

struct TokenArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::vector<std::string> read, write, export_all, erase;
  bool admin = false;
  std::string purpose, expires, certificate;
  std::string id, after;
  bool json = false;
  Zone zone;
};

int run_create(const TokenArguments& arguments) {
  Parameters parameters{{"ns", arguments.namespaces.parameter()}};
  for (const auto& [name, selectors] :
       {std::pair("read", &arguments.read), std::pair("write", &arguments.write),
        std::pair("export", &arguments.export_all), std::pair("erase", &arguments.erase)}) {
    for (const std::string& selector : *selectors) {
      if (const auto parsed = wire::parse_selector(selector); !parsed.ok()) {
        return report_failure(parsed.status());
      }
      parameters.emplace_back(name, selector);
    }
  }
  if (arguments.admin) parameters.emplace_back("admin", "true");
  if (!arguments.purpose.empty()) parameters.emplace_back("purpose", arguments.purpose);
  if (!arguments.certificate.empty()) parameters.emplace_back("certificate", arguments.certificate);
  if (!arguments.expires.empty()) {
    parameters.emplace_back("expires", sent_time(arguments.expires, arguments.zone));
  }
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.post(path_with(wire::routes::kTokens, parameters), "", "text/plain");
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) return print_document(*body);
  nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  show_times_in(document, arguments.zone);
  const bool is_shown = arguments.certificate.empty();
  if (!document.is_object() || text_field(document, is_shown ? "token" : "id").empty()) {
    return report_failure(io_error("the daemon's answer is no token"));
  }
  const std::string expires = text_field(document, "expires");
  const std::string until = expires.empty() ? "" : ", until " + expires;
  if (!is_shown) {
    write_out(stdout, text_field(document, "id") + "\n");
    print_error("Token %s stands for the certificate of %s%s.\n",
                text_field(document, "id").c_str(), arguments.certificate.c_str(), until.c_str());
    return finish_stdout();
  }
  // The token alone, so that a script can keep it; what it means goes where people look.
  write_out(stdout, text_field(document, "token") + "\n");
  print_error("Token %s%s. Keep it now: it is not shown again.\n",
              text_field(document, "id").c_str(), until.c_str());
  return finish_stdout();
}

int run_list(const TokenArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.get_small(wire::routes::kTokens);
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) return print_document(*body);
  nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  show_times_in(document, arguments.zone);
  if (!document.is_object() || !document.contains("tokens")) {
    return report_failure(io_error("the daemon's answer is no list"));
  }
  Table table({{"ID"}, {"STATE"}, {"NAMESPACE"}, {"MAY"}, {"PURPOSE"}, {"ENDS"}, {"LAST USED"}},
              stdout);
  for (const nlohmann::json& token : document["tokens"]) {
    std::string may;
    for (const char* scope : {"read", "write", "export", "erase"}) {
      const std::string selectors = scope_field(token, scope);
      if (!selectors.empty()) may += (may.empty() ? "" : ", ") + (scope + (" " + selectors));
    }
    if (token.value("admin", false)) may = "everything";
    const std::string certificate = text_field(token, "certificate");
    if (!certificate.empty()) may += ", by certificate " + certificate;
    table.row({text_field(token, "id"), text_field(token, "state"), text_field(token, "namespace"),
               may, or_dash(text_field(token, "purpose")), or_dash(text_field(token, "ends")),
               or_dash(text_field(token, "last_used"))});
  }
  table.flush();
  return finish_stdout();
}

int run_revoke(const TokenArguments& arguments) {
  Parameters parameters{{"id", arguments.id}};
  if (!arguments.after.empty()) {
    parameters.emplace_back("after", sent_time(arguments.after, arguments.zone));
  }
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.remove(path_with(wire::routes::kTokens, parameters));
  return body.ok() ? 0 : report_failure(body.status());
}

}  // namespace

void add_token_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "token", "Who may do what: over TCP nothing goes without a token once there is one");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase token create --write 'kitchen/*' --expires 365d"}));

  const auto made = std::make_shared<TokenArguments>();
  CLI::App* create = add_subcommand(
      *command, action, "create", "Make a token and print it, this once",
      "edgecase token create --read '*/*' --write 'kitchen/*' --expires 365d", made, run_create);
  // One value each time: a `*/*` that the shell has made names of files from is a mistake.
  const auto scope = [create](const char* name, std::vector<std::string>& selectors,
                              const char* help) {
    create->add_option(name, selectors, help)->type_name("SELECTOR")->allow_extra_args(false);
  };
  scope("--read", made->read,
        "Selector of what it may read, as in 'kitchen/*'; may come often. Default: nothing");
  scope("--write", made->write, "Of what it may write; may come often. Default: nothing");
  scope("--export", made->export_all, "Of what it may export; may come often. Default: nothing");
  scope("--erase", made->erase, "Of what it may erase; may come often. Default: nothing");
  create->add_flag("--admin", made->admin,
                   "It may do everything, in every namespace. Default: what the others allow");
  create->add_option("--purpose", made->purpose,
                     "What it reads for, as devices name purposes. Default: not said");
  create
      ->add_option("--certificate", made->certificate,
                   "Name in clients' certificates that it stands for. Default: it is shown itself")
      ->type_name("NAME");
  create
      ->add_option("--expires", made->expires,
                   "When it ends: after 90d, or at a time. Default: never")
      ->type_name("WHEN");
  add_zone_options(*create, made->zone);
  add_namespace_options(*create, made->namespaces, AllNamespaces::Allowed);
  create->add_flag("--json", made->json, "One JSON document. Default: text for people");

  const auto listed = std::make_shared<TokenArguments>();
  CLI::App* list = add_subcommand(
      *command, action, "list", "List tokens: what each may do, until when, when it was last used",
      "edgecase token list", listed, run_list);
  list->add_flag("--json", listed->json, "One JSON document. Default: text for people");
  add_zone_options(*list, listed->zone);

  const auto revoked = std::make_shared<TokenArguments>();
  CLI::App* revoke =
      add_subcommand(*command, action, "revoke", "End a token at once, or after a while",
                     "edgecase token revoke 1a2b3c4d5e", revoked, run_revoke);
  revoke->add_option("id", revoked->id, "As in `token list`")->required();
  revoke
      ->add_option("--after", revoked->after,
                   "Let it end later, as in 24h, while its successor is handed out")
      ->type_name("WHEN");
  add_zone_options(*revoke, revoked->zone);
}

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

int run_list_namespaces(const NamespaceListArguments& arguments) {
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

int run_create_namespace(const NamespaceCreateArguments& arguments) {
  const Status checked = wire::check_name("namespace", arguments.name);
  if (!checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.post(
      path_with(wire::routes::kNamespaces, {{"name", arguments.name}}), "", "text/plain");
  return body.ok() ? 0 : report_failure(body.status());
}

int run_drop_namespace(const NamespaceDropArguments& arguments) {
  const Status checked = wire::check_name("namespace", arguments.name);
  if (!checked.ok()) return report_failure(checked);
  const std::string what = "this drops namespace " + arguments.name + " with everything in it";
  if (!confirmed(what, arguments.yes, arguments.name)) return wire::kExitUsage;
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.remove(path_with(wire::routes::kNamespaces, {{"name", arguments.name}}));
  if (!body.ok()) return report_failure(body.status());
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("still_at")) return 0;
  for (const nlohmann::json& target : document["still_at"]) {
    if (target.is_string())
      print_error("edgecase: what went to %s is still there; to do: drop it there, too\n",
                  printable(target.get<std::string>()).c_str());
  }
  return 0;
}

}  // namespace

void add_namespace_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("namespace", "List, create and drop namespaces");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase namespace create plant"}));

  const auto listed = std::make_shared<NamespaceListArguments>();
  CLI::App* list = add_subcommand(*command, action, "list", "List namespaces",
                                  "edgecase namespace list", listed, run_list_namespaces);
  list->add_flag("--json", listed->json, "One JSON document. Default: text for people");

  const auto made = std::make_shared<NamespaceCreateArguments>();
  CLI::App* create = add_subcommand(*command, action, "create",
                                    "Create a namespace; fine if there is one of that name",
                                    "edgecase namespace create plant", made, run_create_namespace);
  create->add_option("name", made->name, "1 to 128 bytes, without /")->required();

  const auto dropped = std::make_shared<NamespaceDropArguments>();
  CLI::App* drop = add_subcommand(
      *command, action, "drop", "Drop a namespace with everything in it; it cannot be brought back",
      "edgecase namespace drop plant --yes", dropped, run_drop_namespace);
  drop->add_option("name", dropped->name, "As in `namespace list`")->required();
  drop->add_flag("--yes", dropped->yes, "Do not ask");
}

}  // namespace edgecase::cli
