#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct ForwardArguments {
  ConnectionArguments connection;
  std::string name;
  bool json = false;
  bool undelivered = false;
  bool summaries = false;
  std::uint64_t origin = 0, heir = 0;
  RangeArguments range;
  Zone zone;
};

std::string behind_text(const nlohmann::json& target) {
  const auto found = target.find("behind_seconds");
  if (found == target.end() || !found->is_number()) return "-";
  return age_text(static_cast<std::int64_t>(found->get<double>() * 1e9));
}

int run_forward_list(const ForwardArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.get_small(wire::routes::kForward);
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) return print_document(*body);
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("targets"))
    return report_failure(io_error("the daemon's answer is no list"));
  Table table({{"TARGET"},
               {"STATE"},
               {"BEHIND", Align::Right},
               {"READINGS", Align::Right},
               {"BYTES", Align::Right},
               {"REFUSED", Align::Right},
               {"WHY"}},
              stdout);
  for (const nlohmann::json& each : document["targets"]) {
    table.row({text_field(each, "name"), text_field(each, "state"), behind_text(each),
               count_text(count_field(each, "readings")),
               wire::format_size(count_field(each, "bytes")),
               count_text(count_field(each, "undelivered")), or_dash(text_field(each, "why"))});
  }
  table.flush();
  return finish_stdout();
}

// What each side signed of each hour. Exit code 6: of some hours the other side holds something
// else, or has not signed.
int run_summaries(const ForwardArguments& arguments, Parameters parameters) {
  using Document = nlohmann::json;
  DaemonClient client(arguments.connection);
  parameters.emplace_back("summaries", "true");
  Document documents = Document::array();
  std::size_t unconfirmed = 0, count = 0;
  Table table({{"HOUR"},
               {"NAMESPACE"},
               {"DEVICE"},
               {"SENT", Align::Right},
               {"THERE", Align::Right},
               {"SIGNED"}},
              stdout);
  for (std::string behind;;) {
    Parameters asked = parameters;
    if (!behind.empty()) asked.emplace_back("behind", behind);
    const Result<std::string> body = client.get_small(path_with(wire::routes::kForward, asked));
    if (!body.ok()) return report_failure(body.status());
    Document page = Document::parse(*body, nullptr, false);
    if (!page.is_object() || !page.contains("summaries"))
      return report_failure(io_error("the daemon's answer is no list"));
    for (Document& each : page["summaries"]) {
      const bool is_confirmed = each.value("confirmed", false);
      if (!is_confirmed) ++unconfirmed;
      ++count;
      Document& document = each["document"];
      if (arguments.json) {
        documents.push_back(std::move(document));
        continue;
      }
      show_times_in(document, arguments.zone);
      const Document summary = document.value("summary", Document::object());
      const bool is_signed = document.contains("receipt");
      table.row({text_field(summary, "hour"), text_field(summary, "namespace"),
                 text_field(summary, "device"), count_text(count_field(summary, "readings")),
                 is_signed ? count_text(count_field(document, "readings")) : "-",
                 is_confirmed ? "by both"
                 : is_signed  ? "by both, and not the same"
                              : "no: " + text_field(document, "why")});
    }
    behind = text_field(page, "next");
    if (behind.empty()) break;
  }
  if (arguments.json) {
    print_document(documents.dump());
  } else {
    table.flush();
    write_out(stdout,
              count_of(count, "hour") + ", " + count_text(unconfirmed) + " not confirmed\n");
  }
  if (const int lost = finish_stdout(); lost != 0) return lost;
  return unconfirmed == 0 ? wire::kExitOk : wire::kExitPartly;
}

int run_forward_status(const ForwardArguments& arguments) {
  if (arguments.summaries) return run_summaries(arguments, {{"name", arguments.name}});
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.get_small(path_with(wire::routes::kForward, {{"name", arguments.name}}));
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) return print_document(*body);
  nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object()) return report_failure(io_error("the daemon's answer is no object"));
  show_times_in(document, arguments.zone);
  const auto line = [](const char* label, const std::string& text) {
    char padded[32];
    std::snprintf(padded, sizeof padded, "%-22s", label);
    write_out(stdout, padded + printable(text) + "\n");
  };
  line("target", text_field(document, "name"));
  line("to", or_dash(text_field(document, "to")));
  line("state", text_field(document, "state"));
  if (const std::string why = text_field(document, "why"); !why.empty()) line("why", why);
  line("behind", behind_text(document));
  if (document.contains("apart") && document["apart"] == true)
    line("kept apart there",
         "the target knows another copy of this store; to do: edgecase forward origins there");
  if (number_field(document, "waiting_at_most"))
    line("waiting, at most", count_of(count_field(document, "waiting_at_most"), "reading"));
  if (const std::string oldest = text_field(document, "oldest_waiting"); !oldest.empty())
    line("oldest waiting", oldest);
  line("last answer", or_dash(text_field(document, "answered")));
  line("sent", count_of(count_field(document, "readings"), "reading") + ", " +
                   wire::format_size(count_field(document, "bytes")));
  line("batches", count_text(count_field(document, "requests")) + ", of which " +
                      count_text(count_field(document, "failed_requests")) +
                      " did not get through");
  if (const auto unsent = document.find("unsent");
      unsent != document.end() && unsent->is_object()) {
    for (const auto& [reason, count] : unsent->items()) {
      if (reason != "unfit" && count.is_number_unsigned() && count > 0)
        line("went unsent", count_of(count.get<std::uint64_t>(), "reading") + ": " + reason);
    }
  }
  if (const std::uint64_t sent = count_field(document, "thinned_sent"); sent > 0)
    line("of these as windows", count_of(sent, "reading"));
  line("it cannot hold", count_of(count_field(document, "unfit"), "reading"));
  line("it did not keep", count_of(count_field(document, "not_kept"), "reading"));
  line("it refused", count_of(count_field(document, "undelivered"), "reading"));
  const auto refused = document.find("undelivered_readings");
  if (refused == document.end() || !refused->is_array() || refused->empty()) return finish_stdout();
  if (const std::string why = text_field(document, "refused_why"); !why.empty())
    line("the last of them", why);
  line("kept to be sent again", count_text(count_field(document, "undelivered_kept")) +
                                    " (edgecase forward resume NAME --undelivered)");
  write_out(stdout, "\n");
  Table table({{"NAMESPACE"}, {"SERIES"}, {"TIME"}, {"STATUS", Align::Right}, {"REFUSED"}}, stdout);
  for (const nlohmann::json& each : *refused) {
    table.row({text_field(each, "namespace"),
               text_field(each, "device") + "/" + text_field(each, "sensor"),
               text_field(each, "time"), count_text(count_field(each, "status")),
               text_field(each, "refused")});
  }
  table.flush();
  return finish_stdout();
}

int run_action(const ForwardArguments& arguments, const char* action) {
  DaemonClient client(arguments.connection);
  Parameters parameters{{"name", arguments.name}, {"action", action}};
  if (arguments.undelivered) parameters.emplace_back("undelivered", "true");
  const Result<std::string> body =
      client.post(path_with(wire::routes::kForward, parameters), "", "text/plain");
  return body.ok() ? 0 : report_failure(body.status());
}

int run_pause(const ForwardArguments& arguments) {
  return run_action(arguments, "pause");
}

int run_resume(const ForwardArguments& arguments) {
  return run_action(arguments, "resume");
}

int run_origins(const ForwardArguments& arguments) {
  if (arguments.summaries) return run_summaries(arguments, {{"origins", "true"}});
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.get_small(path_with(wire::routes::kForward, {{"origins", "true"}}));
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) return print_document(*body);
  nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("origins"))
    return report_failure(io_error("the daemon's answer is no list"));
  show_times_in(document, arguments.zone);
  Table table({{"ORIGIN", Align::Right},
               {"STORE"},
               {"WITH"},
               {"SINCE"},
               {"DEVICES", Align::Right},
               {"RENAMED", Align::Right},
               {"NOTE"}},
              stdout);
  for (const nlohmann::json& each : document["origins"]) {
    const bool is_given = each.contains("heir") && each["heir"].is_number();
    const bool is_second = each.contains("second") && each["second"] == true;
    table.row({count_text(count_field(each, "origin")), text_field(each, "store").substr(0, 8),
               text_field(each, "with"), text_field(each, "since"),
               count_text(count_field(each, "devices")), count_text(count_field(each, "renamed")),
               is_given    ? "with " + count_text(count_field(each, "heir"))
               : is_second ? "a second copy of its store, kept apart"
                           : "-"});
  }
  table.flush();
  return finish_stdout();
}

int run_hand_over(const ForwardArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Parameters parameters{{"action", "hand-over"},
                              {"origin", std::to_string(arguments.origin)},
                              {"heir", std::to_string(arguments.heir)}};
  const Result<std::string> body =
      client.post(path_with(wire::routes::kForward, parameters), "", "text/plain");
  return body.ok() ? 0 : report_failure(body.status());
}

int run_forget(const ForwardArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.remove(path_with(wire::routes::kForward, {{"name", arguments.name}}));
  return body.ok() ? 0 : report_failure(body.status());
}

// Exit code 0: all that the target can hold is there.
int run_verify(const ForwardArguments& arguments) {
  if (const Status checked = check_range(arguments.range); !checked.ok())
    return report_failure(checked);
  DaemonClient client(arguments.connection);
  std::uint64_t readings = 0, missing = 0, sent_again = 0, refused = 0, unchecked = 0;
  nlohmann::json hours = nlohmann::json::array();
  std::uint64_t unnamed = 0;
  constexpr std::size_t kHoursShown = 1000;
  for (std::string behind;;) {
    Parameters parameters{{"name", arguments.name}, {"action", "verify"}};
    append_range(arguments.range, parameters);
    if (!behind.empty()) parameters.emplace_back("behind", behind);
    const Result<std::string> body =
        client.post(path_with(wire::routes::kForward, parameters), "", "text/plain");
    if (!body.ok()) return report_failure(body.status());
    nlohmann::json page = nlohmann::json::parse(*body, nullptr, false);
    if (!page.is_object()) return report_failure(io_error("the daemon's answer is no object"));
    readings += count_field(page, "readings");
    missing += count_field(page, "missing");
    sent_again += count_field(page, "sent_again");
    refused += count_field(page, "refused");
    unchecked += count_field(page, "unchecked");
    for (nlohmann::json& each : page["hours"]) {
      if (hours.size() < kHoursShown) {
        hours.push_back(std::move(each));
      } else {
        ++unnamed;
      }
    }
    behind = text_field(page, "next");
    if (behind.empty()) break;
  }
  nlohmann::json document = {{"name", arguments.name},   {"readings", readings},
                             {"missing", missing},       {"sent_again", sent_again},
                             {"refused", refused},       {"unchecked", unchecked},
                             {"hours", std::move(hours)}};
  if (arguments.json) {
    print_document(document.dump());
  } else {
    show_times_in(document, arguments.range.zone);
    if (missing > 0) {
      Table table({{"NAMESPACE"},
                   {"SERIES"},
                   {"HOUR"},
                   {"READINGS", Align::Right},
                   {"MISSING", Align::Right}},
                  stdout);
      for (const nlohmann::json& each : document["hours"]) {
        table.row({text_field(each, "namespace"),
                   text_field(each, "device") + "/" + text_field(each, "sensor"),
                   text_field(each, "hour"), count_text(count_field(each, "readings")),
                   count_text(count_field(each, "missing"))});
      }
      table.flush();
      if (unnamed > 0) write_out(stdout, "and " + count_of(unnamed, "hour") + " more\n");
    }
    write_out(stdout,
              count_of(readings, "reading") + " compared, " + count_text(missing) + " missing" +
                  (missing > 0 ? ", " + count_text(sent_again) + " sent again" : "") +
                  (refused > 0 ? ", " + count_text(refused) + " refused there" : "") +
                  (unchecked > 0 ? ", " + count_text(unchecked) + " too large to compare" : "") +
                  "\n");
  }
  if (const int lost = finish_stdout(); lost != 0) return lost;
  return missing == 0 ? wire::kExitOk : wire::kExitPartly;
}

CLI::App* add_with_name(CLI::App& parent, Action& action, const char* name, const char* purpose,
                        const char* example, const std::shared_ptr<ForwardArguments>& arguments,
                        int (*run)(const ForwardArguments&)) {
  CLI::App* command = add_subcommand(parent, action, name, purpose, example, arguments, run);
  command->add_option("target", arguments->name, "Its name, as in [[forward]]")->required();
  return command;
}

}  // namespace

void add_forward_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "forward", "Where readings go on to ([[forward]]), and how far each target is");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase forward list"}));

  const auto listed = std::make_shared<ForwardArguments>();
  CLI::App* list = add_subcommand(*command, action, "list", "List targets and how far they are",
                                  "edgecase forward list", listed, run_forward_list);
  list->add_flag("--json", listed->json, "One JSON document. Default: text for people");

  const auto shown = std::make_shared<ForwardArguments>();
  CLI::App* status =
      add_with_name(*command, action, "status", "What a target has, what waits, what it refused",
                    "edgecase forward status cloud", shown, run_forward_status);
  status->add_flag("--json", shown->json, "One JSON document. Default: text for people");
  status->add_flag(
      "--summaries", shown->summaries,
      "Of each device and hour: what went there, signed here and there (an EdgeCase).\n"
      "--json gives the documents; edgecase report --verify checks one. Exit code 6\n"
      "where the target has signed something else, or nothing");
  add_zone_options(*status, shown->zone);

  const auto verified = std::make_shared<ForwardArguments>();
  CLI::App* verify =
      add_with_name(*command, action, "verify",
                    "Ask a target for all that went there; what is missing is sent again (exit 6)",
                    "edgecase forward verify cloud --from -1d", verified, run_verify);
  add_range_options(*verify, verified->range);
  verify->add_flag("--json", verified->json, "One JSON document");

  add_with_name(*command, action, "pause", "Send nothing to a target; its place stays",
                "edgecase forward pause cloud", std::make_shared<ForwardArguments>(), run_pause);

  const auto resumed = std::make_shared<ForwardArguments>();
  CLI::App* resume = add_with_name(*command, action, "resume", "Go on, and try at once",
                                   "edgecase forward resume cloud", resumed, run_resume);
  resume->add_flag("--undelivered", resumed->undelivered,
                   "Send what it refused again, once that is mended there");

  add_with_name(*command, action, "forget",
                "Drop the place of a target that is not configured any more",
                "edgecase forward forget cloud", std::make_shared<ForwardArguments>(), run_forget);

  const auto origins = std::make_shared<ForwardArguments>();
  CLI::App* from =
      add_subcommand(*command, action, "origins", "The stores that forward to this one",
                     "edgecase forward origins", origins, run_origins);
  from->add_flag("--json", origins->json, "One JSON document. Default: text for people");
  from->add_flag("--summaries", origins->summaries,
                 "Of each device and hour that came: what was signed there and here");
  add_zone_options(*from, origins->zone);

  const auto handed = std::make_shared<ForwardArguments>();
  CLI::App* over = add_subcommand(
      *command, action, "hand-over",
      "What a store brought is another's from now on, which was restored from its backup",
      "edgecase forward hand-over 1 3", handed, run_hand_over);
  over->add_option("origin", handed->origin, "Number of the store that is lost")->required();
  over->add_option("heir", handed->heir, "Number of the store that goes on with it")->required();
}

}  // namespace edgecase::cli
