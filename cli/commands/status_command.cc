#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <CLI/CLI.hpp>

#include "application.h"
#include "commands/status_command.h"
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

namespace {

using Document = nlohmann::ordered_json;

constexpr std::size_t kPartColumn = 10;

const Document& at(const Document& json, const char* path) {
  static const Document kNothing;
  const Document::json_pointer pointer(path);
  return json.contains(pointer) ? json.at(pointer) : kNothing;
}

std::string text(const Document& json, const char* path) {
  const Document& found = at(json, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::uint64_t count(const Document& json, const char* path) {
  const Document& found = at(json, path);
  return found.is_number_unsigned() ? found.get<std::uint64_t>() : 0;
}

double number(const Document& json, const char* path) {
  const Document& found = at(json, path);
  return found.is_number() ? found.get<double>() : 0;
}

bool is(const Document& json, const char* path, bool wanted) {
  const Document& found = at(json, path);
  return found.is_boolean() && found.get<bool>() == wanted;
}

// "21.5" as 21; an age that is no number, or is beyond all time, as none.
std::string age(double seconds) {
  return age_text(static_cast<std::int64_t>(std::clamp(seconds, 0.0, 9e9) * 1e9));
}

void add_drive_problems(const Document& status, const std::string& name,
                        std::vector<std::string>& problems) {
  const std::string base = "/drives/" + name;
  const std::string reason = text(status, (base + "/degraded").c_str());
  if (reason.empty()) return;
  const std::string since = text(status, (base + "/degraded_since").c_str());
  problems.push_back("the " + name + " drive is degraded" +
                     (since.empty() ? "" : " since " + since) + ": " + reason);
}

void add_damage(const Document& status, std::vector<std::string>& problems) {
  const Document& damaged = at(status, "/scrub/damaged");
  if (!damaged.is_array()) return;
  for (const Document& file : damaged) {
    if (!file.is_object()) continue;
    std::string line = "damaged: " + text(file, "/path") + ": " + text(file, "/problem");
    const Document& lost = at(file, "/lost");
    if (lost.is_array() && !lost.empty() && lost.front().is_object()) {
      const Document& first = lost.front();
      line += "; lost " + text(first, "/device") + "/" + text(first, "/sensor") + " from " +
              text(first, "/from") + " to " + text(first, "/to");
      const bool is_more = lost.size() > 1 || is(file, "/lost_more", true);
      if (is_more) line += " and others";
    }
    problems.push_back(std::move(line));
  }
}

void add_clock_problems(const Document& status, std::vector<std::string>& problems) {
  if (is(status, "/clock/trusted", false)) {
    problems.push_back("the clock is not trusted: nothing expires, readings are dated later");
  } else if (text(status, "/clock/expiry_waits") == "jump") {
    problems.push_back("the clock leapt: nothing expires until it has been steady (" +
                       age(number(status, "/clock/expiry_waits_seconds")) + " so far)");
  }
}

void add_mqtt_problems(const Document& status, std::vector<std::string>& problems) {
  const std::string broker = text(status, "/mqtt/broker");
  if (!broker.empty() && is(status, "/mqtt/connected", false)) {
    const std::string why = text(status, "/mqtt/last_error");
    problems.push_back("not connected to the broker " + broker + (why.empty() ? "" : ": " + why));
  }
  const std::uint64_t refused = count(status, "/mqtt/subscriptions_refused");
  if (refused > 0) {
    problems.push_back("the broker refuses " + count_of(refused, "subscription") +
                       ": what these would bring does not come");
  }
  const std::uint64_t rejected =
      count(status, "/mqtt/rejected") + count(status, "/mqtt/listener/rejected");
  if (rejected > 0) problems.push_back(rejected_text(rejected));
}

void add_forward_problems(const Document& status, std::vector<std::string>& problems) {
  const auto targets = status.find("forward");
  if (targets == status.end() || !targets->is_array()) return;
  for (const Document& target : *targets) {
    const std::string name = text(target, "/name");
    const std::string why = text(target, "/why");
    if (!why.empty())
      problems.push_back("readings for " + name + " wait here, it is " + text(target, "/state") +
                         ": " + why);
    if (target.contains("apart") && target["apart"] == true)
      problems.push_back(name +
                         " knows another copy of this store, so what goes there is kept apart");
    std::string unsent;
    for (const char* const reason : {"expired", "evicted", "erased", "thinned"}) {
      std::uint64_t many = count(target, (std::string("/unsent/") + reason).c_str());
      // It has their windows.
      if (reason == std::string_view("thinned"))
        many -= std::min(many, count(target, "/thinned_sent"));
      if (many > 0) unsent += (unsent.empty() ? "" : ", ") + count_text(many) + " " + reason;
    }
    if (!unsent.empty()) problems.push_back(name + " never got: " + unsent);
    if (const std::uint64_t refused = count(target, "/undelivered"); refused > 0)
      problems.push_back(name + " refused " + count_of(refused, "reading") +
                         ": edgecase forward status " + name);
  }
}

// What was acknowledged and is not there as it was sent, by cause; empty: nothing.
std::string losses(const Document& status) {
  std::uint64_t all = 0;
  std::string causes;
  for (const char* const cause : {"expired", "replaced", "erased", "evicted"}) {
    const std::uint64_t many = count(status, (std::string("/rates/not_stored/") + cause).c_str());
    if (many == 0) continue;
    all += many;
    causes += (causes.empty() ? "" : ", ") + std::string(cause) + " " + count_text(many);
  }
  return all == 0 ? "" : count_text(all) + " not kept (" + causes + ")";
}

std::string drive(const Document& status, const std::string& name) {
  const std::string base = "/drives/" + name;
  const std::uint64_t total = count(status, (base + "/total_bytes").c_str());
  std::string line = text(status, (base + "/path").c_str());
  if (total > 0) {
    line += ": " + wire::format_size(count(status, (base + "/free_bytes").c_str())) + " free of " +
            wire::format_size(total);
  }
  return line + ", " + wire::format_size(count(status, (base + "/live_bytes").c_str())) +
         " in use, " + text(status, (base + "/file_system").c_str());
}

std::string mqtt(const Document& status) {
  std::string line;
  if (const std::string broker = text(status, "/mqtt/broker"); !broker.empty()) {
    line = broker + (is(status, "/mqtt/connected", true) ? " connected, " : " away, ") +
           count_of(count(status, "/mqtt/messages"), "message");
  }
  if (const std::string address = text(status, "/mqtt/listener/address"); !address.empty()) {
    line += (line.empty() ? "" : "; ") + address + ": " +
            count_of(count(status, "/mqtt/listener/connections"), "connection") + ", " +
            count_of(count(status, "/mqtt/listener/messages"), "message");
  }
  return line.empty() ? "no broker, no listener" : line;
}

std::string erasing(const Document& status) {
  const std::string why = text(status, "/erasure/level_why");
  return text(status, "/erasure/level") + (why.empty() ? "" : ": " + why);
}

}  // namespace

std::vector<std::string> status_problems(const Document& status) {
  std::vector<std::string> problems;
  if (is(status, "/ready", false)) {
    problems.push_back("takes no writes: " + or_dash(text(status, "/reason")));
  }
  add_drive_problems(status, "metadata", problems);
  add_drive_problems(status, "values", problems);
  add_damage(status, problems);
  if (const std::string why = text(status, "/audit/failure"); !why.empty()) {
    problems.push_back("the audit log fails: " + why);
  }
  if (const std::uint64_t lost = count(status, "/audit/lost"); lost > 0) {
    problems.push_back(count_of(lost, "record") + " of the audit log could not be kept");
  }
  if (const std::string why = text(status, "/eviction/blocked"); !why.empty()) {
    problems.push_back("no room can be made: " + why);
  }
  add_clock_problems(status, problems);
  add_mqtt_problems(status, problems);
  add_forward_problems(status, problems);
  return problems;
}

std::string status_summary(const Document& status) {
  const std::vector<std::string> problems = status_problems(status);
  std::string page = "EdgeCase " + text(status, "/version") + ", up " +
                     age(number(status, "/uptime_seconds")) +
                     (is(status, "/ready", true) ? ", ready" : ", not ready") +
                     (problems.empty() ? ", all is well\n" : "\n");
  const bool fits = problems.size() <= kProblemLinesMax;
  const std::size_t shown = fits ? problems.size() : kProblemLinesMax - 1;
  for (std::size_t i = 0; i < shown; ++i) page += "! " + printable(problems[i]) + "\n";
  if (!fits) {
    page += "! and " + count_text(problems.size() - shown) + " more: edgecase status -v\n";
  }
  const auto line = [&page](std::string name, const std::string& what) {
    name.resize(kPartColumn, ' ');
    page += name + printable(what) + "\n";
  };
  line("stored", count_of(count(status, "/catalog/series"), "series", "series") + " of " +
                     count_of(count(status, "/catalog/devices"), "device") + " in " +
                     count_of(count(status, "/catalog/namespaces"), "namespace"));
  const std::string lost = losses(status);
  line("taken in", rate_text(number(status, "/rates/readings_per_second")) + ", " +
                       count_of(count(status, "/rates/readings"), "reading") + " since the start" +
                       (lost.empty() ? "" : ", " + lost));
  line("metadata", drive(status, "metadata"));
  line("values", drive(status, "values"));
  line("memory", wire::format_size(count(status, "/memory/resident_bytes")) + " of " +
                     wire::format_size(count(status, "/memory/limit_bytes")) + "; log " +
                     wire::format_size(count(status, "/wal/bytes")) + " of " +
                     wire::format_size(count(status, "/wal/limit_bytes")));
  line("kept", text(status, "/expiry/default") + ", " +
                   count_of(count(status, "/expiry/rules"), "rule") +
                   "; when full: " + text(status, "/eviction/on_full"));
  line("erasing", erasing(status));
  line("mqtt", mqtt(status));
  line("clock", text(status, "/clock/now") +
                    (is(status, "/clock/synchronised", true) ? ", synchronised" : ""));
  return page;
}

}  // namespace edgecase::cli
