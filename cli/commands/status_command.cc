#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <CLI/CLI.hpp>

#include "answers.h"
#include "application.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct StatusArguments {
  ConnectionArguments connection;
  bool json = false;
  bool all = false;
  bool health = false;
  std::uint32_t watch_seconds = 0;  // 0: once
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

// The daemon's answer; an error is told.
Result<nlohmann::ordered_json> ask(DaemonClient& client) {
  EC_ASSIGN_OR_RETURN(const std::string body, client.get_small(wire::routes::kStatus));
  auto document = nlohmann::ordered_json::parse(body, nullptr, false);
  if (!document.is_object()) return io_error("the daemon's answer is no object");
  return document;
}

void print(const nlohmann::ordered_json& document, bool is_all) {
  if (is_all) {
    print_object(document, 0);
  } else {
    write_out(stdout, status_summary(document));
  }
}

// What a terminal shows of a text without scrolling: what is wrong stands first.
std::string first_lines(const std::string& text, std::size_t rows) {
  std::size_t end = 0;
  for (std::size_t row = 1; row < rows && end < text.size(); ++row)
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return rows == 0 ? text : text.substr(0, end);
}

// Again and again, until nobody reads it. A daemon that is away is said, and waited for.
int watch(DaemonClient& client, const StatusArguments& arguments) {
  const bool on_terminal = is_terminal(stdout);
  for (;;) {
    const Result<nlohmann::ordered_json> document = ask(client);
    if (on_terminal) std::fputs("\x1b[H\x1b[J", stdout);
    if (document.ok() && on_terminal && !arguments.all) {
      write_out(stdout, first_lines(status_summary(*document), terminal_rows()));
    } else if (document.ok()) {
      print(*document, arguments.all);
    } else {
      write_out(stdout, "! " + document.status().message() + "\n");
    }
    if (!on_terminal) write_out(stdout, "\n");
    if (const int code = finish_stdout(); code != wire::kExitOk) return code;
    std::this_thread::sleep_for(std::chrono::seconds(arguments.watch_seconds));
  }
}

// For whoever starts and watches the daemon: whether it answers and takes writes. Asks what needs
// no token.
int run_health(DaemonClient& client) {
  const Result<std::string> answer = client.get_small(wire::routes::kReadyz);
  if (!answer.ok()) return report_failure(answer.status());
  write_out(stdout, *answer + (answer->ends_with('\n') ? "" : "\n"));
  return finish_stdout();
}

int run_status(const StatusArguments& arguments) {
  DaemonClient client(arguments.connection);
  if (arguments.health) return run_health(client);
  if (arguments.watch_seconds > 0) return watch(client, arguments);
  if (arguments.json) {
    const Result<std::string> body = client.get_small(wire::routes::kStatus);
    if (!body.ok()) return report_failure(body.status());
    write_out(stdout, *body + (body->ends_with('\n') ? "" : "\n"));
    return finish_stdout();
  }
  const Result<nlohmann::ordered_json> document = ask(client);
  if (!document.ok()) return report_failure(document.status());
  print(*document, arguments.all);
  return finish_stdout();
}

}  // namespace

void add_status_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = app.add_subcommand(
      "status",
      "Show the daemon's health, clock, both drives, rates and sources; what is wrong first");
  CLI::Option* const json =
      command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  CLI::Option* const all =
      command->add_flag("-v,--verbose", arguments->all, "All that the daemon tells of itself");
  CLI::Option* const watch =
      command
          ->add_option("--watch", arguments->watch_seconds,
                       "Again every so many seconds (1 to 3600; 2 when no number is given)")
          ->expected(0, 1)
          ->default_str("2")
          ->check(CLI::Range(1, 3600));
  command
      ->add_flag("--health", arguments->health,
                 "Say only whether the daemon takes writes; exit 0 if it does. Needs no token")
      ->excludes(json, all, watch);
  json->excludes(all, watch);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase status", "edgecase status --watch", "edgecase status --health"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_status(*arguments); }; });
}

}  // namespace edgecase::cli
