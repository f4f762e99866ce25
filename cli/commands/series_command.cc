// `edgecase series` and `edgecase devices`: what is stored.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/commands.h"
#include "connection.h"
#include "daemon_client.h"
#include "help_text.h"
#include "json_text.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "time_arguments.h"
#include "wire/contract.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

enum class ListingKind : unsigned char { Series, Devices };

struct ListingArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  wire::SelectionTexts selection;
  bool json = false;
  Zone zone;
  DeviceFilterArguments filter;  // of devices
};

std::string time_of(const nlohmann::json& row, const char* name, const Zone& zone) {
  const std::string text = text_field(row, name);
  const Result<std::int64_t> time = wire::parse_rfc3339_ns(text);
  return time.ok() ? short_time(*time, zone.get()) : (text.empty() ? "-" : text);
}

int print_table(const nlohmann::json& rows, ListingKind kind, bool with_namespace,
                const Zone& zone) {
  std::vector<Table::Column> columns;
  if (with_namespace) columns.push_back({"NAMESPACE", Align::Left});
  columns.push_back({kind == ListingKind::Series ? "SERIES" : "DEVICE", Align::Left});
  if (kind == ListingKind::Devices) columns.push_back({"SERIES", Align::Right});
  columns.push_back({"READINGS", Align::Right});
  columns.push_back({"FIRST", Align::Left});
  columns.push_back({"LAST", Align::Left});
  columns.push_back({"STORED", Align::Right});
  columns.push_back({"RATE", Align::Right});
  Table table(std::move(columns), stdout);
  for (const nlohmann::json& row : rows) {
    if (!row.is_object()) continue;
    std::vector<std::string> cells;
    if (with_namespace) cells.push_back(text_field(row, "namespace"));
    std::string name = text_field(row, "device");
    if (kind == ListingKind::Series) name += "/" + text_field(row, "sensor");
    cells.push_back(std::move(name));
    if (kind == ListingKind::Devices) cells.push_back(count_text(count_field(row, "series")));
    cells.push_back(count_text(count_field(row, "count")));
    cells.push_back(time_of(row, "first", zone));
    cells.push_back(time_of(row, "last", zone));
    cells.push_back(wire::format_size(count_field(row, "bytes")));
    cells.push_back(rate_text(number_field(row, "rate").value_or(0)));
    table.row(std::move(cells));
  }
  table.flush();
  if (table.rows() == 0) print_error("Nothing is stored under that name.\n");
  return finish_stdout();
}

// Prints the list; returns the exit code.
int run_listing(const ListingArguments& arguments, ListingKind kind) {
  const Status checked = check_selection(arguments.selection);
  if (!checked.ok()) return report_failure(checked);
  const bool series = kind == ListingKind::Series;
  const char* route = series ? wire::routes::kSeries : wire::routes::kDevices;
  DaemonClient client(arguments.connection);
  Parameters parameters{{"ns", arguments.namespaces.parameter()}};
  append_selection(arguments.selection, parameters);
  append_device_filter(arguments.filter, FilterNames::Plain, parameters);
  const Result<std::string> body = client.get_small(path_with(route, parameters));
  if (!body.ok()) return report_failure(client, parameters, body.status());
  if (arguments.json) {
    write_out(stdout, *body);
    if (!body->ends_with('\n')) write_out(stdout, "\n");
    return finish_stdout();
  }
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  const auto rows =
      document.is_object() ? document.find(series ? "series" : "devices") : document.end();
  if (!document.is_object() || rows == document.end() || !rows->is_array()) {
    return report_failure(io_error("the daemon's answer is no list"));
  }
  if (rows->empty()) look_for_names(client, parameters);
  return print_table(*rows, kind, arguments.namespaces.all, arguments.zone);
}

void add(CLI::App& app, Action& action, const char* name, const char* purpose, const char* example,
         ListingKind kind) {
  auto arguments = std::make_shared<ListingArguments>();
  CLI::App* command = app.add_subcommand(name, purpose);
  add_selection(*command, arguments->selection, WithoutSelection::Everything);
  if (kind == ListingKind::Devices)
    add_device_filter(*command, arguments->filter, FilterNames::Plain);
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
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

namespace {

struct WhereArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  wire::SelectionTexts selection;
  bool json = false;
};

int run_where(const WhereArguments& arguments) {
  const Status checked = check_selection(arguments.selection, WithoutSelection::Refused);
  if (!checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  Parameters parameters{{"ns", arguments.namespaces.parameter()}};
  append_selection(arguments.selection, parameters);
  const Result<std::string> body = client.get_small(path_with(wire::routes::kWhere, parameters));
  if (!body.ok()) return report_failure(client, parameters, body.status());
  if (arguments.json) {
    write_out(stdout, *body + (body->ends_with('\n') ? "" : "\n"));
    return finish_stdout();
  }
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("files"))
    return report_failure(io_error("the daemon's answer is no list of files"));
  Table table({{"DRIVE"},
               {"WHERE"},
               {"LAYER"},
               {"FILE"},
               {"BYTES", Align::Right},
               {"OF", Align::Right},
               {"LOCATIONS"}},
              stdout);
  for (const nlohmann::json& file : document["files"]) {
    table.row({text_field(file, "drive"), or_dash(text_field(file, "drive_location")),
               text_field(file, "layer"),
               text_field(file, "directory") + "/" + text_field(file, "file"),
               wire::format_size(count_field(file, "bytes")),
               wire::format_size(count_field(file, "file_bytes")),
               or_dash(words_field(file, "locations"))});
  }
  table.flush();
  const std::uint64_t window_bytes = count_field(document, "window_bytes");
  write_out(stdout, count_text(count_field(document, "series")) + " series hold " +
                        wire::format_size(count_field(document, "bytes")) + " in " +
                        count_text(document["files"].size()) + " files" +
                        (window_bytes == 0
                             ? "\n"
                             : ", " + wire::format_size(window_bytes) + " windows of tiers\n"));
  return finish_stdout();
}

}  // namespace

void add_where_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<WhereArguments>();
  CLI::App* command = app.add_subcommand(
      "where", "Which files on which drive hold it, where that is, and how many bytes");
  add_selection(*command, arguments->selection, WithoutSelection::Refused);
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase where 'kitchen/*'"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_where(*arguments); }; });
}

}  // namespace edgecase::cli
