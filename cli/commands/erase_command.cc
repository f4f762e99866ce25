#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "target_file.h"
#include "wire/contract.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

using Json = nlohmann::json;
using Steady = std::chrono::steady_clock;

// How long each question to the daemon may take, and how long one obstacle is watched.
constexpr char kWait[] = "1s";
constexpr std::chrono::seconds kObstacleMax{30};

struct EraseArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  RangeArguments range;
  wire::SelectionTexts selection;
  DeviceFilterArguments filter;
  bool yes = false;
  bool dry_run = false;
  bool wait_targets = false;
  bool list = false;
  bool fences = false;
  std::string lift;  // an erasure's number
  bool json = false;
};

// What the daemon would refuse is said before it is asked.
Status check(const EraseArguments& arguments) {
  if (arguments.fences || !arguments.lift.empty()) {
    if (arguments.selection.empty() && arguments.filter.empty()) return ok();
    return invalid_argument("--fences and --lift take no selector: a fence is known by its id");
  }
  if (arguments.list) {
    DeviceFilterArguments others = arguments.filter;
    others.owner.clear();
    const bool is_of_device = others.empty() && arguments.selection.selectors.size() <= 1 &&
                              !has_identity(arguments.selection);
    return is_of_device
               ? ok()
               : invalid_argument("--list knows certificates by one device or --owner alone");
  }
  const bool is_said = arguments.filter.empty() ? !arguments.selection.empty()
                                                : arguments.selection.selectors.empty();
  if (!is_said) {
    return invalid_argument(
        "say what to erase: selectors, or --owner, --purpose, --object, --label; or "
        "--measurement, --tag, --field");
  }
  EC_TRY(check_selection(arguments.selection));
  return check_range(arguments.range);
}

Parameters parameters_of(const EraseArguments& arguments) {
  Parameters parameters{{"ns", arguments.namespaces.parameter()}};
  append_selection(arguments.selection, parameters);
  append_device_filter(arguments.filter, FilterNames::Plain, parameters);
  append_range(arguments.range, parameters);
  return parameters;
}

Result<Json> object_of(const Result<std::string>& body) {
  if (!body.ok()) return body.status();
  Json document = Json::parse(*body, nullptr, false);
  if (!document.is_object()) return io_error("the daemon's answer is no object");
  return document;
}

bool is_set(const Json& document, const char* flag) {
  const auto found = document.find(flag);
  return found != document.end() && found->is_boolean() && found->get<bool>();
}

std::string count_or_unknown(const Json& document, const char* name) {
  return number_field(document, name) ? count_text(count_field(document, name)) : "?";
}

std::string summary_of(const Json& document) {
  const bool is_counted = number_field(document, "readings").has_value();
  std::string text = (is_counted ? count_of(count_field(document, "readings"), "reading")
                                 : std::string("? readings")) +
                     " of " + count_text(count_field(document, "series")) + " series";
  if (number_field(document, "bytes"))
    text += " (" + wire::format_size(count_field(document, "bytes")) + ")";
  if (const std::uint64_t windows = count_field(document, "windows"); windows > 0) {
    text += ", " + count_of(windows, "window") + " of tiers";
    if (!text_field(document, "windows_note").empty())
      text += " (those that the range cuts go whole)";
  }
  const std::uint64_t devices = count_field(document, "devices");
  if (devices > 0) text += ", " + count_of(devices, "device");
  return text;
}

int print_preview(const Json& document) {
  Table table({{"NAMESPACE"},
               {"SERIES"},
               {"READINGS", Align::Right},
               {"BYTES", Align::Right},
               {"FIRST"},
               {"LAST"}},
              stdout);
  for (const Json& series : document.value("matched", Json::array())) {
    table.row(
        {text_field(series, "namespace"),
         text_field(series, "device") + "/" + text_field(series, "sensor"),
         count_or_unknown(series, "readings"),
         number_field(series, "bytes") ? wire::format_size(count_field(series, "bytes")) : "?",
         or_dash(text_field(series, "first")), or_dash(text_field(series, "last"))});
  }
  table.flush();
  write_out(stdout, summary_of(document) + " would be erased\n");
  if (const std::string note = erasure_level_note(document); !note.empty())
    write_out(stdout, printable(note) + "\n");
  if (const std::string note = forwarded_note(document); !note.empty())
    write_out(stdout, printable(note) + "\n");
  return finish_stdout();
}

// One line on stderr while the daemon works; silent unless that is a terminal.
class Waiting {
 public:
  ~Waiting() {
    if (is_shown_) print_error("\r\x1b[K");
  }
  void show(const std::string& obstacle) {
    if (!is_terminal(stderr)) return;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Steady::now() - started_).count();
    std::fprintf(stderr, "\r\x1b[Kinvisible; the bytes are going, %lld s %s",
                 static_cast<long long>(seconds), printable(obstacle).c_str());
    is_shown_ = true;
  }

 private:
  const Steady::time_point started_ = Steady::now();
  bool is_shown_ = false;
};

// Until the bytes are gone, or something holds them that will take long.
Result<Json> wait_until_gone(DaemonClient& client, Json certificate) {
  Waiting waiting;
  auto free_since = Steady::now();
  while (text_field(certificate, "state") != "done" && !is_set(certificate, "drive_away")) {
    const std::string obstacle = text_field(certificate, "waiting_for");
    if (obstacle.empty()) free_since = Steady::now();
    if (Steady::now() - free_since > kObstacleMax) break;
    waiting.show(obstacle);
    EC_ASSIGN_OR_RETURN(
        certificate,
        object_of(client.get_small(
            path_with(wire::routes::kErasures,
                      {{"id", std::to_string(count_field(certificate, "id"))}, {"wait", kWait}}))));
  }
  return certificate;
}

// Until every target has answered for good, too, however long one is away.
Result<Json> wait_for_targets(DaemonClient& client, Json certificate) {
  constexpr std::chrono::milliseconds kLook{200};
  Waiting waiting;
  while (has_target_in(certificate, "waiting") || has_target_in(certificate, "requested")) {
    waiting.show(forwarded_note(certificate));
    std::this_thread::sleep_for(kLook);
    EC_ASSIGN_OR_RETURN(
        certificate,
        object_of(client.get_small(path_with(
            wire::routes::kErasures, {{"id", std::to_string(count_field(certificate, "id"))}}))));
  }
  return certificate;
}

const char* bytes_of(const Json& certificate) {
  const std::string level = text_field(certificate, "level");
  if (level == "physical") return "; the bytes are gone";
  return level == "cryptographic" ? "; the keys are gone" : "; overwritten as far as the drives do";
}

int report(const EraseArguments& arguments, const Json& certificate) {
  const bool is_done = text_field(certificate, "state") == "done";
  const std::string id = std::to_string(count_field(certificate, "id"));
  if (arguments.json) {
    print_document(certificate.dump());
  } else {
    write_out(stdout, "erased " + summary_of(certificate) +
                          (is_done ? bytes_of(certificate) : "; invisible, the bytes are pending") +
                          "; certificate " + id + "\n");
  }
  if (const int lost = finish_stdout(); lost != 0) return lost;
  const std::string note = is_done ? erasure_level_note(certificate) : std::string();
  if (!note.empty()) print_error("edgecase: %s\n", printable(note).c_str());
  if (const std::string there = forwarded_note(certificate); !there.empty())
    print_error("edgecase: %s\n", printable(there).c_str());
  if (is_done && arguments.wait_targets && has_target_in(certificate, "not possible"))
    return wire::kExitPartly;
  if (is_done) return wire::kExitOk;
  const std::string obstacle = text_field(certificate, "waiting_for");
  print_error("edgecase: pending: %s; the daemon goes on by itself (edgecase erase --list)\n",
              printable(obstacle.empty() ? "the bytes are not gone yet" : obstacle).c_str());
  return wire::kExitPartly;
}

int run_list(const EraseArguments& arguments, DaemonClient& client) {
  Parameters parameters{{"ns", arguments.namespaces.name}};
  if (!arguments.selection.selectors.empty())
    parameters.emplace_back("device", arguments.selection.selectors.front());
  if (!arguments.filter.owner.empty()) parameters.emplace_back("owner", arguments.filter.owner);
  const Result<std::string> body = client.get_small(path_with(wire::routes::kErasures, parameters));
  if (body.ok() && arguments.json) return print_document(*body);
  Result<Json> document = object_of(body);
  if (!document.ok()) return report_failure(document.status());
  show_times_in(*document, arguments.range.zone);
  Table table({{"ID", Align::Right},
               {"STATE"},
               {"LEVEL"},
               {"INVISIBLE"},
               {"GONE"},
               {"SERIES", Align::Right},
               {"READINGS", Align::Right},
               {"ASKED BY"}},
              stdout);
  for (const Json& each : document->value("erasures", Json::array())) {
    table.row({std::to_string(count_field(each, "id")), text_field(each, "state"),
               text_field(each, "level"), text_field(each, "invisible"),
               or_dash(text_field(each, "gone")), count_text(count_field(each, "series")),
               count_or_unknown(each, "readings"), text_field(each, "asked_by")});
  }
  table.flush();
  return finish_stdout();
}

int run_fences(const EraseArguments& arguments, DaemonClient& client) {
  const Result<std::string> body = client.get_small(wire::routes::kFences);
  if (body.ok() && arguments.json) return print_document(*body);
  Result<Json> document = object_of(body);
  if (!document.ok()) return report_failure(document.status());
  show_times_in(*document, arguments.range.zone);
  Table table(
      {{"ID", Align::Right}, {"NAMESPACE"}, {"SELECTOR"}, {"FROM"}, {"TO"}, {"SINCE"}, {"REFUSES"}},
      stdout);
  for (const Json& each : document->value("fences", Json::array())) {
    const std::string select = text_field(each, "select");
    table.row({std::to_string(count_field(each, "id")), or_dash(text_field(each, "namespace")),
               select.empty() ? "pseudonym " + text_field(each, "pseudonym").substr(0, 16) : select,
               or_dash(text_field(each, "from")), or_dash(text_field(each, "to")),
               or_dash(text_field(each, "since")), text_field(each, "refuses")});
  }
  table.flush();
  if (const std::uint64_t more = count_field(*document, "more"); more > 0)
    print_error("and %s more of earlier erasures\n", count_text(more).c_str());
  return finish_stdout();
}

int run_lift(const EraseArguments& arguments, DaemonClient& client) {
  const Result<std::string> body =
      client.remove(path_with(wire::routes::kFences, {{"id", arguments.lift}}));
  if (body.ok() && arguments.json) return print_document(*body);
  const Result<Json> document = object_of(body);
  if (!document.ok()) return report_failure(document.status());
  write_out(stdout, "lifted: what comes from now on of erasure " + arguments.lift +
                        " is taken again; fences lifted: " +
                        count_text(count_field(*document, "fences")) + "\n");
  return finish_stdout();
}

int run_erase(const EraseArguments& arguments) {
  if (const Status checked = check(arguments); !checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  if (arguments.fences) return run_fences(arguments, client);
  if (!arguments.lift.empty()) return run_lift(arguments, client);
  if (arguments.list) return run_list(arguments, client);
  Parameters parameters = parameters_of(arguments);
  if (arguments.dry_run || !arguments.yes) {
    const Result<std::string> body =
        client.get_small(path_with(wire::routes::kErasePreview, parameters));
    if (body.ok() && arguments.dry_run && arguments.json) return print_document(*body);
    Result<Json> preview = object_of(body);
    if (!preview.ok()) return report_failure(client, parameters, preview.status());
    show_times_in(*preview, arguments.range.zone);
    if (arguments.dry_run) return print_preview(*preview);
    std::string note = erasure_level_note(*preview);
    if (const std::string there = forwarded_note(*preview); !there.empty())
      note += (note.empty() ? "" : "; ") + there;
    const std::string what = "this erases " + summary_of(*preview) + " for good";
    if (!confirmed(note.empty() ? what : what + " (" + note + ")", false)) return wire::kExitUsage;
  }
  parameters.emplace_back("yes", "true");
  parameters.emplace_back("wait", kWait);
  stop_on_interrupt("\nedgecase: the erasure goes on in the daemon\n", wire::kExitPartly);
  Result<Json> certificate =
      object_of(client.post(path_with(wire::routes::kErase, parameters), "", "text/plain"));
  if (certificate.ok()) certificate = wait_until_gone(client, std::move(certificate).value());
  if (certificate.ok() && arguments.wait_targets)
    certificate = wait_for_targets(client, std::move(certificate).value());
  return certificate.ok() ? report(arguments, *certificate) : report_failure(certificate.status());
}

}  // namespace

void add_erase_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<EraseArguments>();
  CLI::App* command = app.add_subcommand(
      "erase",
      "Erase for good, with the names unless times are given; returns when the bytes are "
      "gone");
  add_selection(*command, arguments->selection, WithoutSelection::Other);
  add_device_filter(*command, arguments->filter, FilterNames::Plain);
  add_range_options(*command, arguments->range);
  command->add_flag("--yes", arguments->yes,
                    "Do not ask; needed where there is no terminal to ask on. Default: ask");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Show what would be erased, and erase nothing. Default: erase");
  command->add_flag("--wait-targets", arguments->wait_targets,
                    "Return when every target of [[forward]] has answered, too");
  command->add_flag("--list", arguments->list,
                    "List certificates of erasures; with a device or --owner: theirs");
  CLI::Option* fences = command->add_flag(
      "--fences", arguments->fences,
      "List what is refused since an erasure: all, or copies (restores, imports) alone");
  command
      ->add_option("--lift", arguments->lift,
                   "Take the fences of an erasure away: what comes from then on is taken again")
      ->type_name("ID")
      ->excludes(fences);
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer(
      {"edgecase erase kitchen --yes", "edgecase erase --owner alice --dry-run",
       "edgecase erase --measurement cpu --tag host=pi --dry-run",
       "edgecase erase -A --purpose marketing --object marketing",
       "edgecase erase 'kitchen/*' --from 2026-11-01 --to 2026-11-02", "edgecase erase --lift 7"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_erase(*arguments); }; });
}

}  // namespace edgecase::cli
