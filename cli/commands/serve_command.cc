#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "app/serve.h"
#include "commands/commands.h"
#include "help_text.h"
#include "setting_flags.h"

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

}  // namespace edgecase::cli
