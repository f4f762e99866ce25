#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "application.h"
#include "backup/backup.h"
#include "command_options.h"
#include "daemon_client.h"
#include "edgecase/machine.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "target_file.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

struct ExportArguments {
  ConnectionArguments connection, to;
  std::string location;
  NamespaceArguments namespaces;
  RangeArguments range;
  wire::SelectionTexts selection;
  DeviceFilterArguments filter;
  std::string purpose;
  std::string output;
  std::string format = "csv";
  LayoutArguments layout;
  bool resume = false, tiers = false;
};

bool is_directory_target(const std::string& path) {
  struct stat status {};
  if (path.ends_with('/')) return true;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Everything of an owner, and no more conditions.
bool is_all_of_owner(const ExportArguments& arguments) {
  DeviceFilterArguments others = arguments.filter;
  others.owner.clear();
  return !arguments.filter.owner.empty() && others.empty() && arguments.selection.empty();
}

// What is somebody's is exported whole.
Status check_owner(const ExportArguments& arguments) {
  const RangeArguments& range = arguments.range;
  if (!range.from.empty() || !range.since.empty() || !range.to.empty() || arguments.resume) {
    return invalid_argument("--owner exports all of it: without --from, --since, --to, --resume");
  }
  return ok();
}

Status check_push(const ExportArguments& arguments) {
  if (arguments.to.host.empty()) {
    return arguments.location.empty()
               ? ok()
               : invalid_argument("--location says where --to-host is, give that, too");
  }
  if (!is_all_of_owner(arguments) || !arguments.output.empty()) {
    return invalid_argument(
        "--to-host takes what is somebody's: with --owner alone, and without -o");
  }
  return ok();
}

Status check(const ExportArguments& arguments) {
  EC_TRY(check_push(arguments));
  const bool is_said = arguments.filter.empty() ? !arguments.selection.empty()
                                                : arguments.selection.selectors.empty();
  if (!is_said) {
    return invalid_argument(
        "say what to export: selectors, or --owner, --of-purpose, --object, --label; or "
        "--measurement, --tag, --field");
  }
  if (!arguments.filter.owner.empty()) EC_TRY(check_owner(arguments));
  EC_TRY(check_selection(arguments.selection));
  EC_TRY(check_range(arguments.range));
  EC_TRY(check_layout(arguments.layout, arguments.format));
  if (is_wide(arguments.layout) && is_directory_target(arguments.output)) {
    return invalid_argument("--layout wide puts all series into one file, name it with -o FILE");
  }
  if (!arguments.filter.empty() && !is_all_of_owner(arguments) &&
      (arguments.resume || is_directory_target(arguments.output))) {
    return invalid_argument("devices by what is said of them go into one file, or to stdout");
  }
  if (arguments.resume && !is_directory_target(arguments.output)) {
    return invalid_argument("--resume continues an export into a directory, give one with -o");
  }
  return ok();
}

// How many readings to expect; 0 when nobody looks or the range makes it unknown.
std::uint64_t expected_readings(DaemonClient& client, const ExportArguments& arguments) {
  const RangeArguments& range = arguments.range;
  if (!is_terminal(stderr) || !arguments.filter.empty() || !range.from.empty() ||
      !range.since.empty() || !range.to.empty()) {
    return 0;
  }
  Parameters parameters{
      {"ns", arguments.namespaces.parameter()}, {"purpose", arguments.purpose}, {"export", "true"}};
  append_selection(arguments.selection, parameters);
  const Result<std::string> body = client.get_small(path_with(wire::routes::kSeries, parameters));
  if (!body.ok()) return 0;
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  std::uint64_t total = 0;
  if (!document.is_object() || !document.contains("series")) return 0;
  for (const nlohmann::json& row : document["series"]) total += count_field(row, "count");
  return total;
}

// report_failure(), with names that are near.
int report_export_failure(DaemonClient& client, const ExportArguments& arguments,
                          const Status& status) {
  Parameters asked{{"ns", arguments.namespaces.parameter()}};
  append_selection(arguments.selection, asked);
  return report_failure(client, asked, status);
}

int export_to_file(const ExportArguments& arguments, const std::string& path) {
  DaemonClient client(arguments.connection);
  const std::uint64_t total = expected_readings(client, arguments);
  stop_on_interrupt("\nedgecase: stopped, " + arguments.output + " was not written\n",
                    wire::kExitFailed);
  Result<TargetFile> file = TargetFile::open_output(arguments.output);
  if (!file.ok()) return report_failure(file.status());
  const bool has_lines = !is_columnar(arguments.format) && !is_wide(arguments.layout);
  Progress progress("export", has_lines ? total : 0, "readings");
  Status written;
  Status status = client.get(path, [&](std::string_view piece) {
    written = file->write(piece);
    progress.add(has_lines ? lines_in(piece) : 0, piece.size());
    return written.ok();
  });
  progress.finish();
  if (!written.ok()) return report_failure(written);
  if (status.ok()) status = file->commit();
  return status.ok() ? wire::kExitOk : report_export_failure(client, arguments, status);
}

int export_to_stdout(const ExportArguments& arguments, const std::string& path) {
  if (const Status status = check_destination(arguments.format); !status.ok())
    return report_failure(status);
  DaemonClient client(arguments.connection);
  bool written = true;
  const Status status = client.get(path, [&written](std::string_view piece) {
    written = write_out(stdout, piece);
    return written;
  });
  const int flushed = finish_stdout();
  if (!status.ok() && written) return report_export_failure(client, arguments, status);
  return flushed;
}

int run_export(const ExportArguments& arguments) {
  if (const Status status = check(arguments); !status.ok()) return report_failure(status);
  if (!arguments.to.host.empty()) {
    return push_owner(
        {arguments.connection, arguments.to, arguments.filter.owner, arguments.location});
  }
  if (is_all_of_owner(arguments) && is_directory_target(arguments.output)) {
    return export_owner({arguments.connection, arguments.filter.owner, arguments.output});
  }
  if (is_directory_target(arguments.output)) {
    DirectoryExport directory{
        arguments.connection, arguments.namespaces,
        arguments.range,      arguments.selection,
        arguments.purpose,    arguments.output,
        arguments.format,     arguments.resume ? ExportMode::Resume : ExportMode::Fresh,
        arguments.tiers};
    return export_to_directory(directory);
  }
  Parameters parameters = {{"format", arguments.format}, {"export", "true"}};
  const bool is_owned = !arguments.filter.owner.empty();
  parameters.emplace_back("ns", is_owned ? "*" : arguments.namespaces.parameter());
  append_selection(arguments.selection, parameters);
  append_device_filter(arguments.filter, FilterNames::OfPurpose, parameters);
  if (!arguments.purpose.empty()) parameters.emplace_back("purpose", arguments.purpose);
  append_range(arguments.range, parameters);
  append_layout(arguments.layout, parameters);
  if (arguments.tiers) parameters.emplace_back("tiers", "true");
  const std::string path = path_with(wire::routes::kQuery, parameters);
  if (arguments.output.empty() || arguments.output == "-") return export_to_stdout(arguments, path);
  return export_to_file(arguments, path);
}

void add_push_options(CLI::App& command, ExportArguments& arguments) {
  CLI::Option* const host =
      command.add_option("--to-host", arguments.to.host,
                         "With --owner: straight into another EdgeCase, http(s)://HOST:PORT");
  command
      .add_option("--to-token", arguments.to.token, "Token to show there [env EDGECASE_TO_TOKEN]")
      ->needs(host);
  command
      .add_option("--to-tls-ca", arguments.to.tls_ca,
                  "Certificates to trust there, else this machine's")
      ->needs(host);
  command
      .add_option("--location", arguments.location,
                  "Where that one's data is; must be one of storage.locations, where that is set")
      ->type_name("PLACE");
}

}  // namespace

void add_export_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand(
      "export", "Write readings to a file, a directory (a file a series) or stdout");
  add_selection(*command, arguments->selection, WithoutSelection::Other);
  add_device_filter(*command, arguments->filter, FilterNames::OfPurpose);
  command->get_option("--owner")->description(
      "All devices of one owner, in all namespaces and whatever their purposes;\n"
      "into a directory: as NDJSON and CSV, with manifest.json");
  command
      ->add_option("-o,--output", arguments->output,
                   "File, which appears when it is whole; or a directory (ending in / where\n"
                   "there is none yet): NAMESPACE/DEVICE/SENSOR.csv")
      ->type_name("FILE");
  add_push_options(*command, *arguments);
  add_range_options(*command, arguments->range);
  add_purpose_option(*command, arguments->purpose);
  command
      ->add_option("--format", arguments->format,
                   "csv, ndjson, line (Influx line protocol), parquet or arrow (Feather)")
      ->check(CLI::IsMember({"csv", "ndjson", "line", "parquet", "arrow"}))
      ->capture_default_str();
  add_layout_options(*command, arguments->layout);
  add_tiers_option(*command, arguments->tiers);
  command->add_flag("--resume", arguments->resume,
                    "Continue an export into a directory: files that are there stay");
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer(
      {"edgecase export 'kitchen/*' --since 30d -o kitchen.csv",
       "edgecase export '*/*' --format parquet -o all.parquet",
       "edgecase export '*/*' --tiers --format ndjson -o all.ndjson",
       "edgecase export '*/*' -A -o backup/ --resume", "edgecase export --owner alice -o alice/",
       "edgecase export --owner alice --to-host https://other.example:8650"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_export(*arguments); }; });
}

namespace {

CLI::App* add(CLI::App& app, Action& action, const char* name, const char* purpose,
              const char* directory, const char* example,
              const std::shared_ptr<BackupRequest>& request, int (*run)(const BackupRequest&)) {
  CLI::App* const command = add_subcommand(app, action, name, purpose, example, request, run);
  command->add_option("directory", request->directory, directory)->type_name("DIR")->required();
  return command;
}

}  // namespace

void add_backup_command(CLI::App& app, Action& action) {
  const auto request = std::make_shared<BackupRequest>();
  add(app, action, "backup",
      "Save every reading of one moment, and what is said of devices and retention",
      "Made where there is none; one that was broken off goes on",
      "edgecase backup /mnt/usb/monday", request, run_backup)
      ->add_option("--location", request->location,
                   "Where that is; must be one of storage.locations, where that is set")
      ->type_name("PLACE");
}

void add_restore_command(CLI::App& app, Action& action) {
  add(app, action, "restore",
      "Store what a backup holds; what is there, and what was erased, stays as it is",
      "What backup wrote", "edgecase restore /mnt/usb/monday", std::make_shared<BackupRequest>(),
      run_restore);
}

}  // namespace edgecase::cli
