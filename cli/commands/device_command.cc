#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/commands.h"
#include "commands/subcommand.h"
#include "daemon_client.h"
#include "help_text.h"
#include "json_text.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "wire/contract.h"
#include "wire/names.h"

namespace edgecase::cli {
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
  write_out(stdout, count_text(count_field(document, "described")) + " devices\n");
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
