#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands/commands.h"
#include "help_text.h"
#include "listing.h"
#include "wire/routes.h"

namespace edgecase::cli {
namespace {

void add(CLI::App& app, Action& action, const char* name, const char* purpose, const char* example,
         ListingKind kind) {
  auto arguments = std::make_shared<ListingArguments>();
  CLI::App* command = app.add_subcommand(name, purpose);
  command
      ->add_option("selector", arguments->selector,
                   "device/sensor with globs * and ?; kitchen alone means kitchen/*")
      ->capture_default_str();
  if (kind == ListingKind::Devices)
    add_device_filter(*command, arguments->filter, FilterNames::Plain);
  command->add_flag("--json", arguments->json, "One JSON document");
  add_zone_options(*command, arguments->zone);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({example}));
  command->callback([arguments, kind, &action] {
    action = [arguments, kind] { return run_listing(*arguments, kind); };
  });
}

}  // namespace

void add_series_command(CLI::App& app, Action& action) {
  add(app, action, "series", "List series: readings stored, first and last time, bytes, rate",
      "edgecase series 'kitchen/*'", ListingKind::Series);
}

void add_devices_command(CLI::App& app, Action& action) {
  add(app, action, "devices",
      "List devices: series, readings stored, first and last time, bytes, rate",
      "edgecase devices --json", ListingKind::Devices);
}

}  // namespace edgecase::cli
