#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/serve.h"
#include "application.h"
#include "command_options.h"
#include "config/configuration.h"
#include "output.h"
#include "reading_output.h"
#include "storage/drive.h"
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

namespace {

struct ShowArguments {
  SettingArguments settings;
  bool json = false;
};

// The line speaks for itself: file, line, column, key.
int report_configuration(const Status& status) {
  print_error("%s\n", status.message().c_str());
  return wire::kExitUsage;
}

int run_show(const ShowArguments& arguments) {
  const Result<config::Configuration> configuration = load_settings(arguments.settings);
  if (!configuration.ok()) return report_configuration(configuration.status());
  write_out(stdout, arguments.json ? config::effective_json(*configuration) + "\n"
                                   : config::effective_text(*configuration));
  return finish_stdout();
}

// What the daemon would say to it. The service has its credentials, and whoever looks at its
// configuration has not: `left_out` names the settings that are passed over for that.
Result<config::Configuration> judge(const config::Sources& sources,
                                    std::vector<std::string>& left_out) {
  EC_ASSIGN_OR_RETURN(config::Configuration configuration, config::load_configuration(sources));
  const char* const credentials = std::getenv(config::kCredentialsVariable);
  if (credentials == nullptr) {
    left_out = config::leave_out_credentials(configuration);
  } else {
    EC_TRY(config::resolve_credentials(credentials, configuration));
  }
  EC_TRY(app::check_parts(configuration));
  return configuration;
}

std::size_t count_from_environment(const config::Configuration& configuration) {
  return static_cast<std::size_t>(std::count_if(
      configuration.origins.begin(), configuration.origins.end(),
      [](const auto& at) { return at.second.kind == config::OriginKind::Environment; }));
}

int run_check(const SettingArguments& arguments) {
  // The file alone first: a variable of this shell must not hide a mistake in it.
  config::Sources sources;
  if (!arguments.file.empty()) {
    sources.file = arguments.file;
    sources.missing_file = config::MissingFile::IsError;
  }
  std::vector<std::string> left_out;
  Result<config::Configuration> configuration = judge(sources, left_out);
  if (!configuration.ok()) return report_configuration(configuration.status());
  sources.environment = config::process_environment();
  configuration = judge(sources, left_out);
  if (!configuration.ok()) return report_configuration(configuration.status());
  const std::string what = configuration->file.empty()
                               ? "there is no " + sources.file + ", the defaults are used"
                               : configuration->file + " is right";
  const std::size_t variables = count_from_environment(*configuration);
  print_error("%s%s\n", what.c_str(),
              variables == 0 ? "" : ", and so is what the environment sets (`config show`)");
  for (const std::string& key : left_out) {
    print_error("%s: a credential, which the service alone has: not looked at\n", key.c_str());
  }
  const config::StorageSettings& directories = configuration->settings.storage;
  if (storage::on_one_drive(directories.metadata, directories.values)) {
    print_error(
        "metadata and values lie on one drive; for values on another: edgecase config storage "
        "--values DIR\n");
  }
  return wire::kExitOk;
}

}  // namespace

void add_config_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("config", "Show, check and start a configuration");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase config check /etc/edgecase/edgecase.toml"}));

  auto show_arguments = std::make_shared<ShowArguments>();
  CLI::App* show =
      command->add_subcommand("show", "Print the settings in effect and where each comes from");
  show->add_flag("--json", show_arguments->json, "One JSON document. Default: text for people");
  add_setting_options(*show, show_arguments->settings);
  show->footer(help_footer({"edgecase config show --json"}));
  show->callback([show_arguments, &action] {
    action = [show_arguments] { return run_show(*show_arguments); };
  });

  auto check_arguments = std::make_shared<SettingArguments>();
  CLI::App* check = command->add_subcommand(
      "check", "Check a file, and EDGECASE_ variables with it, without starting anything");
  check->add_option("file", check_arguments->file, "Else " + std::string(config::kDefaultFile))
      ->type_name("FILE");
  check->footer(help_footer({"edgecase config check ./edgecase.toml"}));
  check->callback([check_arguments, &action] {
    action = [check_arguments] { return run_check(*check_arguments); };
  });

  CLI::App* example = command->add_subcommand(
      "example", "Print a commented configuration with every setting at its default");
  example->footer(help_footer({"edgecase config example > edgecase.toml"}));
  example->callback([&action] {
    action = [] {
      write_out(stdout, config::example_text());
      return finish_stdout();
    };
  });

  add_config_storage(*command, action);
}

}  // namespace edgecase::cli
