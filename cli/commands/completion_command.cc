#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "application.h"
#include "commands/commands.h"
#include "daemon_client.h"
#include "json_text.h"
#include "manual/command_tree.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"
#include "wire/selector.h"

namespace edgecase::cli {
namespace {

// The text is made while the declarations are there to be read; they are gone when it is printed.
void print_later(std::string text, Action& action) {
  action = [text = std::move(text)] {
    write_out(stdout, text);
    return finish_stdout();
  };
}

void add_script(CLI::App& command, const CLI::App& app, const char* shell, const char* place,
                std::string (*script)(const Command&), Action& action) {
  CLI::App* one = command.add_subcommand(shell, std::string("Print the script for ") + shell);
  one->footer(help_footer({std::string("edgecase completion ") + shell + " > " + place}));
  one->callback([&app, script, &action] { print_later(script(read_command_tree(app)), action); });
}

// Devices, each with a slash behind it where a selector goes on, and series of the running daemon.
struct NameArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string word;
  bool devices = false;
};

// A shell offers no more than somebody looks through.
constexpr std::size_t kNamesOffered = 500;
constexpr int kPagesMax = 4;

// Nothing is said where no daemon answers: somebody is typing.
int run_names(const NameArguments& arguments) {
  const std::size_t slash = arguments.word.find('/');
  const bool is_sensor = slash != std::string::npos && !arguments.devices;
  const std::string device = wire::unescape_name(arguments.word.substr(0, slash));
  const std::string sensor =
      is_sensor ? wire::unescape_name(arguments.word.substr(slash + 1)) : std::string();
  DaemonClient client(arguments.connection);
  std::set<std::string> names;
  std::string offset = "0";
  for (int page = 0; page < kPagesMax && names.size() < kNamesOffered; ++page) {
    const Result<std::string> body =
        client.get_small(path_with(wire::routes::kFind, {{"ns", arguments.namespaces.parameter()},
                                                         {"q", device},
                                                         {"limit", std::to_string(kNamesOffered)},
                                                         {"offset", offset}}));
    if (!body.ok()) break;
    const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
    if (!document.is_object()) break;
    for (const nlohmann::json& each : document.value("found", nlohmann::json::array())) {
      const std::string found = text_field(each, "device");
      if (is_sensor) {
        const std::string name = text_field(each, "sensor");
        if (found == device && name.starts_with(sensor))
          names.insert(wire::escape_name(found) + "/" + wire::escape_name(name));
      } else if (found.starts_with(device)) {
        names.insert(wire::escape_name(found) + (arguments.devices ? "" : "/"));
      }
    }
    const auto next = document.find("next");
    if (next == document.end() || !next->is_number_unsigned()) break;
    offset = std::to_string(next->get<std::uint64_t>());
  }
  for (const std::string& name : names) {
    // A line is a name.
    if (printable(name) == name) write_out(stdout, name + "\n");
  }
  static_cast<void>(finish_stdout());
  return wire::kExitOk;
}

void add_names(CLI::App& command, Action& action) {
  const auto arguments = std::make_shared<NameArguments>();
  CLI::App* names =
      command.add_subcommand("names", "Print devices and series that begin so")->group("");
  names->add_option("word", arguments->word, "What is typed already");
  names->add_flag("--devices", arguments->devices, "Devices alone");
  add_namespace_options(*names, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*names, arguments->connection);
  names->footer(help_footer({"edgecase completion names kit"}));
  names->callback([arguments, &action] { action = [arguments] { return run_names(*arguments); }; });
}

}  // namespace

void add_completion_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("completion", "Print what teaches a shell to complete");
  command->require_subcommand(1);
  command->footer(help_footer(
      {"edgecase completion bash > ~/.local/share/bash-completion/completions/edgecase"}));
  add_script(*command, app, "bash", "/etc/bash_completion.d/edgecase", bash_completion, action);
  add_script(*command, app, "zsh", "/usr/local/share/zsh/site-functions/_edgecase", zsh_completion,
             action);
  add_script(*command, app, "fish", "~/.config/fish/completions/edgecase.fish", fish_completion,
             action);
  add_names(*command, action);
}

// For the package: what `man edgecase` shows.
void add_manual_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("manual", "Print a manual page in roff")->group("");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase manual edgecase.1 | man -l -"}));
  command->add_subcommand("edgecase.1", "The commands")->callback([&app, &action] {
    print_later(edgecase_page(read_command_tree(app)), action);
  });
  command->add_subcommand("edgecased.8", "The daemon")->callback([&app, &action] {
    print_later(edgecased_page(read_command_tree(app)), action);
  });
  command->add_subcommand("edgecase.toml.5", "The configuration")->callback([&action] {
    print_later(configuration_page(), action);
  });
}

}  // namespace edgecase::cli
