#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/serve.h"
#include "application.h"
#include "command_options.h"
#include "commands/commands.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

int run_serve(const SettingArguments& arguments) {
  Result<config::Configuration> configuration = load_settings(arguments);
  if (!configuration.ok()) return app::refuse_to_serve(configuration.status());
  return app::serve(std::move(configuration).value(),
                    [&arguments] { return load_settings(arguments); });
}

}  // namespace

void add_serve_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<SettingArguments>();
  CLI::App* command = app.add_subcommand(
      "serve", "Run the daemon in the foreground, until SIGTERM; edgecased is the same");
  add_setting_options(*command, *arguments);
  command->footer(
      "A setting comes from its flag, else from the environment (EDGECASE_STORAGE_VALUES), else\n"
      "from the file, else it is the default.\n\n" +
      help_footer({"edgecase serve --storage.metadata ./meta --storage.values ./values "
                   "--http.socket ./edgecase.sock"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_serve(*arguments); }; });
}

namespace {

struct VersionArguments {
  bool json = false;
};

int run_version(const VersionArguments& arguments) {
  const std::string version(wire::version());
  const std::string text =
      arguments.json ? nlohmann::json{{"version", version}}.dump() : "edgecase " + version;
  write_out(stdout, text + "\n");
  return finish_stdout();
}

}  // namespace

void add_version_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<VersionArguments>();
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  command->footer(help_footer({"edgecase version"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_version(*arguments); }; });
}

}  // namespace edgecase::cli
