#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "commands/commands.h"
#include "daemon_client.h"
#include "help_text.h"
#include "json_text.h"
#include "output.h"
#include "reading_output.h"
#include "wire/errors.h"
#include "wire/routes.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct StatusArguments {
  ConnectionArguments connection;
  bool json = false;
};

constexpr std::size_t kNameColumn = 28;

// A number in the unit that its name ends in.
std::string number_text(std::string_view name, const nlohmann::ordered_json& value) {
  const double number = value.get<double>();
  const bool whole = value.is_number_unsigned() || (value.is_number_integer() && number >= 0);
  if (whole && name.ends_with("bytes")) return wire::format_size(value.get<std::uint64_t>());
  if (name.ends_with("per_second")) return rate_text(number);
  if (whole && name.ends_with("_ns")) {
    return age_text(value.get<std::int64_t>());
  }
  if (name.ends_with("seconds") && number >= 0 && number < 9e9) {
    return age_text(static_cast<std::int64_t>(number * 1e9));
  }
  if (whole) return count_text(value.get<std::uint64_t>());
  if (!value.is_number_float()) return value.dump();
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

std::string_view without_unit(std::string_view name) {
  for (const std::string_view unit : {"_bytes", "_seconds", "_ns"}) {
    if (name.ends_with(unit)) name.remove_suffix(unit.size());
  }
  return name;
}

// The unit stays where two names differ in nothing else.
std::string label_of(std::string_view name, const nlohmann::ordered_json& object) {
  std::string label(without_unit(name));
  for (const auto& [other, value] : object.items()) {
    if (other != name && without_unit(other) == label) label = name;
  }
  for (char& c : label) {
    if (c == '_') c = ' ';
  }
  return label;
}

// The daemon's document as indented lines: whatever it tells is shown.
void print_object(const nlohmann::ordered_json& object, std::size_t indent) {
  for (const auto& [name, value] : object.items()) {
    std::string line(indent, ' ');
    line += label_of(name, object);
    if (value.is_object()) {
      write_out(stdout, printable(line) + "\n");
      print_object(value, indent + 2);
      continue;
    }
    if (value.is_array() && !value.empty() && value.front().is_object()) {
      for (const nlohmann::ordered_json& item : value) {
        write_out(stdout, printable(line) + "\n");
        print_object(item, indent + 2);
      }
      continue;
    }
    std::string text;
    if (value.is_string()) {
      text = value.get<std::string>();
    } else if (value.is_number()) {
      text = number_text(name, value);
    } else if (value.is_boolean()) {
      text = value.get<bool>() ? "yes" : "no";
    } else if (value.is_array()) {
      for (const nlohmann::ordered_json& item : value) {
        if (!text.empty()) text += ", ";
        text += item.is_string() ? item.get<std::string>() : item.dump();
      }
    }
    if (text.empty()) text = "-";
    line.resize(std::max(line.size() + 1, kNameColumn), ' ');
    write_out(stdout, printable(line + text) + "\n");
  }
}

// One line where something that was acknowledged is not there; nothing else.
void print_losses(const nlohmann::ordered_json& document) {
  const auto losses = document.value(nlohmann::ordered_json::json_pointer("/rates/not_stored"),
                                     nlohmann::ordered_json::object());
  std::uint64_t all = 0;
  std::string causes;
  for (const char* const cause : {"expired", "replaced", "erased", "evicted"}) {
    const auto count = losses.value(cause, std::uint64_t{0});
    if (count == 0) continue;
    all += count;
    causes += (causes.empty() ? "" : ", ") + std::string(cause) + " " + count_text(count);
  }
  if (all == 0) return;
  write_out(stdout, "not kept since the start: " + count_text(all) + " acknowledged readings (" +
                        causes + ")\n");
}

int run_status(const StatusArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.get_small(wire::routes::kStatus);
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) {
    write_out(stdout, *body + (body->ends_with('\n') ? "" : "\n"));
    return finish_stdout();
  }
  const auto document = nlohmann::ordered_json::parse(*body, nullptr, false);
  if (!document.is_object()) return report_failure(io_error("the daemon's answer is no object"));
  print_object(document, 0);
  print_losses(document);
  return finish_stdout();
}

}  // namespace

void add_status_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = app.add_subcommand(
      "status", "Show the daemon's health, clock, both drives, rates and sources");
  command->add_flag("--json", arguments->json, "One JSON document");
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase status"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_status(*arguments); }; });
}

}  // namespace edgecase::cli
