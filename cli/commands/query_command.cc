#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "commands/commands.h"
#include "daemon_client.h"
#include "help_text.h"
#include "reading_output.h"
#include "selection.h"
#include "time_arguments.h"
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

}  // namespace edgecase::cli
