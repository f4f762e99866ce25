#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
namespace {

struct MqttTestArguments {
  ConnectionArguments connection;
  std::string topic;
  std::string payload;
  bool json = false;
  Zone zone;
};

void print_rule(const nlohmann::json& rule) {
  std::string line = "rule " + std::to_string(count_field(rule, "number"));
  if (const std::uint64_t at = count_field(rule, "line"); at != 0) {
    line += " (line " + std::to_string(at) + ")";
  }
  if (const std::string preset = text_field(rule, "preset"); !preset.empty()) {
    line += ", preset " + preset;
  }
  line += ": " + text_field(rule, "template");
  write_out(stdout, printable(line) + "\n");
}

void print_readings(const nlohmann::json& document) {
  Table table({{"NAMESPACE", Align::Left},
               {"SERIES", Align::Left},
               {"TIME", Align::Left},
               {"VALUE", Align::Right},
               {"TYPE", Align::Left}},
              stdout);
  const auto readings = document.find("readings");
  if (readings == document.end() || !readings->is_array()) return;
  std::vector<std::string> reasons;  // each once
  for (const nlohmann::json& reading : *readings) {
    const auto value = reading.find("value");
    std::string text = "-";
    std::string type = text_field(reading, "type");
    if (value != reading.end()) {
      text = value->is_string() ? value->get<std::string>() : value->dump();
      if (value->is_number_float()) {  // as a query shows it
        text.clear();
        wire::append_double(value->get<double>(), text);
      }
      if (type.empty()) {
        type = value->is_string() ? "text" : value->is_boolean() ? "bool" : "float";
      }
    }
    const std::string time = text_field(reading, "time");
    table.row({text_field(reading, "namespace"),
               text_field(reading, "device") + "/" + text_field(reading, "sensor"),
               time.empty() ? "on arrival" : time, text, type});
    const std::string why = text_field(reading, "time_reason");
    if (!why.empty() && std::find(reasons.begin(), reasons.end(), why) == reasons.end()) {
      reasons.push_back(why);
    }
  }
  table.flush();
  for (const std::string& why : reasons) write_out(stdout, printable("time: " + why) + "\n");
}

void print_result(const nlohmann::json& document) {
  const auto rule = document.find("rule");
  if (rule != document.end() && rule->is_object()) print_rule(*rule);
  const std::string reason = text_field(document, "reason");
  if (!reason.empty()) {
    write_out(stdout, printable(text_field(document, "outcome") + ": " + reason) + "\n");
  }
  print_readings(document);
  const auto suggestion = document.find("suggestion");
  if (suggestion == document.end() || !suggestion->is_object()) return;
  write_out(stdout,
            "these lines of the configuration take it, after systemctl reload edgecased:\n\n" +
                printable_lines(text_field(*suggestion, "rule")) + "\n");
  print_readings(*suggestion);
}

int run_mqtt_test(const MqttTestArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.post(path_with(wire::routes::kMqttTest, {{"topic", arguments.topic}}),
                  arguments.payload, "application/octet-stream");
  if (!body.ok()) return report_failure(body.status());
  nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  show_times_in(document, arguments.zone);
  if (!document.is_object()) return report_failure(io_error("the daemon's answer is no object"));
  if (arguments.json) {
    write_out(stdout, *body + (body->ends_with('\n') ? "" : "\n"));
  } else {
    print_result(document);
  }
  const int flushed = finish_stdout();
  return text_field(document, "outcome") == "rejected" ? wire::kExitFailed : flushed;
}

}  // namespace

void add_mqtt_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("mqtt", "Try the rules that turn messages into readings");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase mqtt test sensors/kitchen/temp 21.5"}));

  auto arguments = std::make_shared<MqttTestArguments>();
  CLI::App* test = command->add_subcommand(
      "test", "Show which rule takes a message and which readings it would make; stores nothing");
  test->add_option("topic", arguments->topic, "The message's topic")->required();
  test->add_option("payload", arguments->payload, "The message's payload")->required();
  test->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_zone_options(*test, arguments->zone);
  add_connection_options(*test, arguments->connection);
  test->footer(help_footer({"edgecase mqtt test zigbee2mqtt/lamp '{\"temperature\":21.5}'"}));
  test->callback(
      [arguments, &action] { action = [arguments] { return run_mqtt_test(*arguments); }; });
}

namespace {

struct InfluxTestArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::vector<std::string> lines;
  std::string precision = "ns";
  bool json = false;
  Zone zone;
};

// The rule that chose the device; "-": none did, so that its tags or the measurement name it.
std::string rule_text(const nlohmann::json& reading) {
  const auto rule = reading.find("rule");
  if (rule == reading.end() || !rule->is_object()) return "-";
  std::string text = std::to_string(count_field(*rule, "number"));
  if (const std::uint64_t line = count_field(*rule, "line"); line != 0)
    text += " (line " + std::to_string(line) + ")";
  return text;
}

std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  std::string text;  // as a query shows it
  wire::append_double(value.get<double>(), text);
  return text;
}

std::size_t print_tried(const nlohmann::json& document) {
  const nlohmann::json readings = document.value("readings", nlohmann::json::array());
  Table table({{"SERIES", Align::Left},
               {"RULE", Align::Left},
               {"TIME", Align::Left},
               {"VALUE", Align::Right},
               {"TYPE", Align::Left}},
              stdout);
  for (const nlohmann::json& reading : readings) {
    const std::string time = text_field(reading, "time");
    table.row({text_field(reading, "device") + "/" + text_field(reading, "sensor"),
               rule_text(reading), time.empty() ? "on arrival" : time,
               value_text(reading.value("value", nlohmann::json())), text_field(reading, "type")});
  }
  if (!readings.empty()) table.flush();
  return readings.size();
}

int run_influx_test(const InfluxTestArguments& arguments) {
  DaemonClient client(arguments.connection);
  std::string lines;
  for (const std::string& line : arguments.lines) lines += line + "\n";
  const Result<std::string> body = client.post(
      path_with(wire::routes::kInfluxTest,
                {{"ns", arguments.namespaces.name}, {"precision", arguments.precision}}),
      lines, "text/plain");
  if (!body.ok()) return report_failure(body.status());
  nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object()) return report_failure(io_error("the daemon's answer is no object"));
  std::size_t taken = document.value("readings", nlohmann::json::array()).size();
  if (arguments.json) {
    write_out(stdout, *body + (body->ends_with('\n') ? "" : "\n"));
  } else {
    show_times_in(document, arguments.zone);
    taken = print_tried(document);
  }
  for (const nlohmann::json& error : document.value("errors", nlohmann::json::array())) {
    print_error("line %llu: %s\n", static_cast<unsigned long long>(count_field(error, "line")),
                printable(text_field(error, "message")).c_str());
  }
  const int flushed = finish_stdout();
  if (count_field(document, "bad_lines") == 0) return flushed;
  return taken == 0 ? wire::kExitFailed : wire::kExitPartly;
}

}  // namespace

void add_influx_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("influx", "Try the rules that give lines of line protocol a device");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase influx test 'weather,station=roof temp=21.5'"}));

  auto arguments = std::make_shared<InfluxTestArguments>();
  CLI::App* test = command->add_subcommand(
      "test", "Show which device and sensor lines would get, and by which rule; stores nothing");
  test->add_option("line", arguments->lines, "Lines of line protocol, each an argument")
      ->required();
  test->add_option("--precision", arguments->precision, "Unit of the lines' times: ns u ms s m h");
  test->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_namespace_options(*test, arguments->namespaces, AllNamespaces::NotAllowed);
  add_zone_options(*test, arguments->zone);
  add_connection_options(*test, arguments->connection);
  test->footer(
      help_footer({"edgecase influx test 'cpu,host=pi usage_idle=98.5' "
                   "'weather,station=roof temp=21.5'"}));
  test->callback(
      [arguments, &action] { action = [arguments] { return run_influx_test(*arguments); }; });
}

}  // namespace edgecase::cli
