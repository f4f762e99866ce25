#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "commands/commands.h"
#include "daemon_client.h"
#include "help_text.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "target_file.h"
#include "time_arguments.h"
#include "wire/contract.h"
#include "wire/escaping.h"
#include "wire/selector.h"

namespace edgecase::cli {
namespace {

struct GetArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string series;
  std::string time;
  std::string purpose;
  std::string output;
  Zone zone;
};

Result<std::string> blob_path(const GetArguments& arguments) {
  EC_ASSIGN_OR_RETURN(const wire::SeriesName series, wire::parse_series_name(arguments.series));
  std::string path = std::string(wire::routes::kBlob) + "/" +
                     percent_encode(arguments.namespaces.name) + "/" +
                     percent_encode(series.device) + "/" + percent_encode(series.sensor);
  Parameters parameters;
  if (!arguments.time.empty()) {
    parameters.emplace_back("time", sent_time(arguments.time, arguments.zone));
  }
  if (!arguments.purpose.empty()) parameters.emplace_back("purpose", arguments.purpose);
  return path_with(path, parameters);
}

Parameters asked(const GetArguments& arguments) {
  return {{"ns", arguments.namespaces.name}, {"select", arguments.series}};
}

// Text is shown on a terminal; other bytes would change what it does, so `-o -` has to ask for
// them.
int print_value(DaemonClient& client, const std::string& path, const GetArguments& arguments) {
  const bool guarded = arguments.output.empty() && is_terminal(stdout);
  bool refused = false;
  const Status status = client.get(path, [&](std::string_view piece) {
    refused = guarded && !is_text(piece);
    return !refused && std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size();
  });
  const int flushed = finish_stdout();
  if (refused) {
    print_error(
        "edgecase: the value is no text and may upset a terminal; -o FILE writes it to a file, "
        "-o - shows it all the same\n");
    return wire::kExitUsage;
  }
  if (!status.ok() && status.code() != StatusCode::Cancelled)
    return report_failure(client, asked(arguments), status);
  return flushed;
}

int run_get(const GetArguments& arguments) {
  const Result<std::string> path = blob_path(arguments);
  if (!path.ok()) return report_failure(path.status());
  DaemonClient client(arguments.connection);
  if (arguments.output.empty() || arguments.output == "-")
    return print_value(client, *path, arguments);

  stop_on_interrupt("\nedgecase: stopped, nothing was written\n", wire::kExitFailed);
  Result<TargetFile> file = TargetFile::open_output(arguments.output);
  if (!file.ok()) return report_failure(file.status());
  Status written;
  Status status = client.get(*path, [&](std::string_view piece) {
    written = file->write(piece);
    return written.ok();
  });
  if (!written.ok()) return report_failure(written);
  if (status.ok()) status = file->commit();
  return status.ok() ? wire::kExitOk : report_failure(client, asked(arguments), status);
}

}  // namespace

void add_get_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App* command = app.add_subcommand("get", "Print one value's raw bytes");
  command->add_option("series", arguments->series, "device/sensor")->required();
  command->add_option("--time", arguments->time,
                      "The value's time, as query shows it. Default: the newest value");
  command
      ->add_option("-o,--output", arguments->output,
                   "File to write; -: stdout, also where it is a terminal. Default: stdout")
      ->type_name("FILE");
  add_zone_options(*command, arguments->zone);
  add_purpose_option(*command, arguments->purpose);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::NotAllowed);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase get door/photo --time 2026-11-20T14:00:00Z -o front.jpg"}));
  command->callback([arguments, &action] { action = [arguments] { return run_get(*arguments); }; });
}

}  // namespace edgecase::cli
