#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "application.h"
#include "command_options.h"
#include "commands/commands.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "target_file.h"
#include "wire/contract.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct LastArguments {
  ConnectionArguments connection;
  ReadingOutput output;
  wire::SelectionTexts selection;
};

int run_last(const LastArguments& arguments) {
  const Status status = check_selection(arguments.selection);
  if (!status.ok()) return report_failure(status);
  ReadingOutput output = arguments.output;
  output.with_age = true;
  DaemonClient client(arguments.connection);
  Parameters parameters;
  append_selection(arguments.selection, parameters);
  return print_readings(client, wire::routes::kLast, std::move(parameters), output);
}

}  // namespace

void add_last_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LastArguments>();
  CLI::App* command = app.add_subcommand("last", "Print the newest reading of each series");
  add_selection(*command, arguments->selection, WithoutSelection::Everything);
  add_format_option(*command, arguments->output.format);
  add_zone_options(*command, arguments->output.zone);
  add_purpose_option(*command, arguments->output.purpose);
  add_namespace_options(*command, arguments->output.namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase last 'kitchen/*' boiler/temp"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_last(*arguments); }; });
}
namespace {

struct QueryArguments {
  ConnectionArguments connection;
  ReadingOutput output;
  RangeArguments range;
  wire::SelectionTexts selection;
  std::string every;
  std::string aggregate;
  std::optional<std::uint64_t> limit;
  bool descending = false, tiers = false;
  LayoutArguments layout;
};

Status check(const QueryArguments& arguments) {
  EC_TRY(check_selection(arguments.selection, WithoutSelection::Refused));
  EC_TRY(check_range(arguments.range));
  if (!arguments.every.empty()) {
    EC_ASSIGN_OR_RETURN(const std::int64_t every, wire::parse_duration_ns(arguments.every));
    if (every == 0) return invalid_argument("--every must be longer than nothing, as in 1h");
    if (arguments.aggregate.empty()) return invalid_argument("--every needs --agg, as in mean");
  }
  if (arguments.tiers && (!arguments.every.empty() || !arguments.aggregate.empty())) {
    return invalid_argument(
        "--tiers prints windows as they are kept: leave it out with --every and --agg, which read "
        "them by themselves");
  }
  if (!arguments.aggregate.empty()) EC_TRY(wire::parse_aggregate(arguments.aggregate).status());
  return check_layout(arguments.layout, arguments.output.format);
}

int run_query(const QueryArguments& arguments) {
  if (const Status status = check(arguments); !status.ok()) return report_failure(status);
  Parameters parameters;
  append_selection(arguments.selection, parameters);
  append_range(arguments.range, parameters);
  if (!arguments.every.empty()) parameters.emplace_back("every", arguments.every);
  if (!arguments.aggregate.empty()) parameters.emplace_back("agg", arguments.aggregate);
  if (arguments.limit.has_value()) {
    parameters.emplace_back("limit", std::to_string(*arguments.limit));
  }
  if (arguments.descending) parameters.emplace_back("desc", "true");
  if (arguments.tiers) parameters.emplace_back("tiers", "true");
  append_layout(arguments.layout, parameters);

  ReadingOutput output = arguments.output;
  // Its columns are as many as there are series: no table of a terminal.
  if (is_wide(arguments.layout) && output.format.empty()) output.format = "csv";
  output.limit = arguments.limit;
  output.zone = arguments.range.zone;
  DaemonClient client(arguments.connection);
  return print_readings(client, wire::routes::kQuery, std::move(parameters), output);
}

}  // namespace

void add_query_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<QueryArguments>();
  CLI::App* command = app.add_subcommand("query", "Print readings, ordered by series, then time");
  add_selection(*command, arguments->selection, WithoutSelection::Refused);
  add_range_options(*command, arguments->range);
  command->add_option(
      "--every", arguments->every,
      "One row for each window of this length, as in 15m; needs --agg. Default: each reading");
  command->add_option(
      "--agg", arguments->aggregate,
      "mean, min, max, sum, count, first, last, stddev, p50, p95, p99 or minmax, also by names\n"
      "as avg and median; alone: one row a series. Default: none");
  command->add_option(
      "--limit", arguments->limit,
      "Print at most this many readings. Default: all; of a table on a terminal 1000");
  command->add_flag("--desc", arguments->descending, "Newest first. Default: oldest first");
  add_tiers_option(*command, arguments->tiers);
  add_layout_options(*command, arguments->layout);
  add_format_option(*command, arguments->output.format);
  add_purpose_option(*command, arguments->output.purpose);
  add_namespace_options(*command, arguments->output.namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase query 'kitchen/*' --since 24h --every 1h --agg mean",
                   "edgecase query 'kitchen/*' --layout wide --every 1h --agg mean --fill previous",
                   "edgecase query --measurement cpu --tag host=pi --field usage_idle --since 1h",
                   "edgecase query boiler/temp --from 2026-11-01 --format csv > nov.csv"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_query(*arguments); }; });
}

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
