// `edgecase series` and `edgecase devices`: what is stored.

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "wire/contract.h"
#include "wire/names.h"
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

// On a terminal without decimals: names need the columns.
std::string time_of(const nlohmann::json& row, const char* name, const Zone& zone) {
  const std::string text = text_field(row, name);
  const Result<std::int64_t> time = wire::parse_rfc3339_ns(text);
  if (!time.ok()) return text.empty() ? "-" : text;
  std::int64_t rest = *time % wire::kNanosecondsPerSecond;
  if (rest < 0) rest += wire::kNanosecondsPerSecond;
  const bool is_cut = is_terminal(stdout) && *time >= INT64_MIN + rest;
  return short_time(is_cut ? *time - rest : *time, zone.get());
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
                        count_of(document["files"].size(), "file") +
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

namespace {

struct DeviceArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string device;
  std::optional<std::string> owner, purposes, objections, location;
  std::vector<std::string> labels;
  DeviceFilterArguments filter;  // of which devices
  bool json = false;
};

int print_device(const std::string& body, bool json) {
  if (json) {
    return print_document(body);
  }
  const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
  if (!document.is_object()) return report_failure(io_error("the daemon's answer is no object"));
  std::string labels;
  const nlohmann::json said = document.value("labels", nlohmann::json::object());
  for (const auto& [label, value] : said.items()) {
    if (!value.is_string()) continue;
    labels += (labels.empty() ? "" : ", ") + (label + "=" + value.get<std::string>());
  }
  const auto line = [](const char* name, const std::string& text) {
    write_out(stdout, std::string(name) + (text.empty() ? "-" : printable(text)) + "\n");
  };
  line("device      ", text_field(document, "device"));
  line("namespace   ", text_field(document, "namespace"));
  line("owner       ", text_field(document, "owner"));
  line("purposes    ", words_field(document, "purposes"));
  line("objections  ", words_field(document, "objections"));
  line("location    ", text_field(document, "location"));
  line("labels      ", labels);
  return finish_stdout();
}

int run_show(const DeviceArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Parameters parameters{{"ns", arguments.namespaces.name}, {"device", arguments.device}};
  const Result<std::string> body = client.get_small(path_with(wire::routes::kDevice, parameters));
  if (!body.ok()) return report_failure(client, parameters, body.status());
  return print_device(*body, arguments.json);
}

int run_set(const DeviceArguments& arguments) {
  const bool is_group = arguments.device.empty() && !arguments.filter.empty();
  if (!arguments.device.empty() && !arguments.filter.empty())
    return report_failure(invalid_argument("say which: a device, or --of-owner, --of-label, ..."));
  const Status checked = is_group ? ok() : wire::check_name("device", arguments.device);
  if (!checked.ok()) return report_failure(checked);
  Parameters parameters{{"ns", arguments.namespaces.parameter()}};
  if (!is_group) parameters.emplace_back("device", arguments.device);
  append_device_filter(arguments.filter, FilterNames::Of, parameters);
  const std::size_t said = parameters.size();
  for (const auto& [name, value] :
       {std::pair("owner", &arguments.owner), std::pair("purpose", &arguments.purposes),
        std::pair("object", &arguments.objections), std::pair("location", &arguments.location)}) {
    if (value->has_value()) parameters.emplace_back(name, **value);
  }
  for (const std::string& label : arguments.labels) parameters.emplace_back("label", label);
  if (parameters.size() == said) {
    return report_failure(invalid_argument("say what to set: --owner, --purpose, --object, ..."));
  }
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.post(path_with(wire::routes::kDevice, parameters), "", "text/plain");
  if (!body.ok()) return report_failure(body.status());
  if (!is_group || arguments.json) return print_device(*body, arguments.json);
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  write_out(stdout, count_of(count_field(document, "described"), "device") + "\n");
  return finish_stdout();
}

CLI::App* add(CLI::App& parent, Action& action, const char* name, const char* purpose,
              const char* example, const std::shared_ptr<DeviceArguments>& arguments,
              int (*run)(const DeviceArguments&), AllNamespaces all) {
  CLI::App* command = add_subcommand(parent, action, name, purpose, example, arguments, run);
  CLI::Option* device = command->add_option("device", arguments->device, "Its name");
  device->required(all == AllNamespaces::NotAllowed);
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_namespace_options(*command, arguments->namespaces, all);
  return command;
}

}  // namespace

void add_device_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "device", "Whose a device is, what its readings may be used for, where it stands");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase device set meter-7 --owner alice --purpose billing"}));
  add(*command, action, "show", "Show what is said of a device", "edgecase device show meter-7",
      std::make_shared<DeviceArguments>(), run_show, AllNamespaces::NotAllowed);

  const auto set = std::make_shared<DeviceArguments>();
  CLI::App* setting =
      add(*command, action, "set",
          "Say something of a device, or of all of which something is said; what is given replaces "
          "what was said, \"\" takes it back",
          "edgecase device set meter-7 --owner alice --purpose billing,heating --object marketing",
          set, run_set, AllNamespaces::Allowed);
  add_device_filter(*setting, set->filter, FilterNames::Of);
  setting->add_option("--owner", set->owner, "Whose data it is");
  setting->add_option("--purpose", set->purposes,
                      "What it may be read for, as in billing,heating; reads then state a purpose");
  setting->add_option("--object", set->objections, "Purposes its owner objects to");
  setting->add_option("--location", set->location, "Where it stands");
  setting->add_option("--label", set->labels, "NAME=VALUE; NAME= takes it back")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

}  // namespace edgecase::cli
