#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands/commands.h"
#include "help_text.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"

namespace edgecase::cli {
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
