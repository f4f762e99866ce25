#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands/commands.h"
#include "daemon_client.h"
#include "help_text.h"
#include "json_text.h"
#include "output.h"
#include "reading_output.h"
#include "time_arguments.h"
#include "wire/contract.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
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
