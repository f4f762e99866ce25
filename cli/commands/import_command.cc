#include <CLI/CLI.hpp>
#include <memory>

#include "commands/commands.h"
#include "help_text.h"
#include "import/importer.h"

namespace edgecase::cli {

void add_import_command(CLI::App& app, Action& action) {
  auto request = std::make_shared<ImportRequest>();
  auto namespaces = std::make_shared<NamespaceArguments>();
  CLI::App* command = app.add_subcommand(
      "import", "Store the readings of files; returns when they are on the drive");
  command
      ->add_option("file", request->paths,
                   "What export wrote: files, or directories of them; - is stdin")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--format", request->format,
                   "csv, ndjson or line (Influx line protocol). Default: by the name's ending")
      ->check(CLI::IsMember({"csv", "ndjson", "line"}));
  command
      ->add_option_function<std::string>(
          "--delimiter",
          [request](const std::string& text) {
            request->csv.delimiter = text == "tab" ? '\t' : text[0];
          },
          "What separates the columns of CSV: , (default) ; | : tab")
      ->type_name("CHARACTER")
      ->check(CLI::IsMember({",", ";", "|", ":", "tab"}));
  command
      ->add_option_function<std::string>(
          "--decimal", [request](const std::string& text) { request->csv.decimal_mark = text[0]; },
          "What CSV writes between a number's whole part and its decimals: . (default) or ,")
      ->type_name("CHARACTER")
      ->check(CLI::IsMember({".", ","}));
  command
      ->add_option_function<std::string>(
          "--time-format",
          [request](const std::string& text) {
            Result<TimeFormat> format = TimeFormat::parse(text);
            if (format.ok()) request->csv.time_format = std::move(format).value();
          },
          "How times are written: unix, unix_ms, unix_us, unix_ns (numbers since 1970, in any\n"
          "format), or for CSV a pattern: \"%d.%m.%Y %H:%M:%S\". Default: RFC 3339 and unix_ns")
      ->check([](const std::string& text) { return TimeFormat::parse(text).status().message(); })
      ->type_name("FORMAT");
  const auto column = [command](const char* name, auto& member, const char* help) {
    return command->add_option(name, member, help)->type_name("COLUMN")->group("CSV of others");
  };
  column("--time-column", request->csv.time_columns,
         "The column of times; several are read together, with a blank between them.\n"
         "Default: time")
      ->delimiter(',');
  CLI::Option* const device_column = column("--device-column", request->csv.device_column,
                                            "The column of devices. Default: device");
  column("--device", request->csv.device, "The device of all readings. Default: --device-column")
      ->type_name("NAME")
      ->excludes(device_column);
  column("--value-columns", request->csv.value_columns,
         "The columns of values, each a sensor of its name; '*', and the default: all others")
      ->delimiter(',');
  column("--sensor-column", request->csv.sensor_column,
         "The column of sensors, where a line is one reading; --value-columns names its value.\n"
         "Default: sensor in files of export, else each column of values is one");
  add_zone_options(*command, request->csv.zone);
  command->get_option("--tz")->description(
      "Whose clock times of CSV without an offset are: Europe/Berlin, +02:00");
  command->add_flag("!--no-manifest", request->takes_manifests,
                    "Leave what manifest.json of export --owner says of devices: owner, purposes,\n"
                    "objections, locations, labels, retention");
  command->add_flag(
      "--dry-run", request->dry_run,
      "Store nothing; print the first readings, what each file holds, and which lines are\n"
      "no readings. Default: store");
  add_namespace_options(*command, *namespaces, AllNamespaces::NotAllowed);
  add_connection_options(*command, request->connection);
  command->footer(help_footer(
      {"edgecase import readings.csv", "edgecase import saved.csv --delimiter ';' --decimal ','",
       "edgecase import weather.csv --device roof --time-column date --time-format '%d.%m.%Y "
       "%H:%M'",
       "edgecase import alice/", "zcat old.csv.gz | edgecase import - --format csv --dry-run"}));
  command->callback([request, namespaces, &action] {
    request->default_namespace = namespaces->name;
    action = [request] { return run_import(*request); };
  });
}

}  // namespace edgecase::cli
