#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "wire/contract.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct RetentionArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  wire::SelectionTexts selection;
  std::string keep;
  std::vector<std::string> then;
  DeviceFilterArguments filter;
  bool json = false;
  bool yes = false;
  Zone zone;
};

// What the daemon would refuse is said before it is asked.
Status check(const RetentionArguments& arguments) {
  if (has_identity(arguments.selection)) {
    return invalid_argument(
        "rules are by names: one by measurement, tag or field would not hold for series that come "
        "later; use selectors, as in '*/cpu.*'");
  }
  if (arguments.selection.empty() == arguments.filter.empty()) {
    return invalid_argument("say of what: selectors, or --owner, --purpose, --object, --label");
  }
  EC_TRY(check_selection(arguments.selection));
  if (arguments.keep.empty()) {
    return arguments.then.empty()
               ? ok()
               : invalid_argument("say how long readings are kept before they become windows: 7d");
  }
  wire::Keeping keeping;
  if (arguments.keep != "forever") {
    EC_ASSIGN_OR_RETURN(keeping.raw_ns, wire::parse_duration_ns(arguments.keep));
    if (keeping.raw_ns == 0) return invalid_argument("a retention of zero keeps nothing");
  }
  for (const std::string& text : arguments.then) {
    EC_ASSIGN_OR_RETURN(const wire::Tier tier, wire::parse_tier(text));
    keeping.tiers.push_back(tier);
  }
  return wire::check_keeping(keeping);
}

Parameters parameters_of(const RetentionArguments& arguments) {
  Parameters parameters{{"ns", arguments.namespaces.parameter()}};
  append_selection(arguments.selection, parameters);
  append_device_filter(arguments.filter, FilterNames::Plain, parameters);
  if (!arguments.keep.empty()) parameters.emplace_back("keep", arguments.keep);
  std::string then;
  for (const std::string& tier : arguments.then) then += (then.empty() ? "" : ",") + tier;
  if (!then.empty()) parameters.emplace_back("then", then);
  return parameters;
}

// "7d, then 1m:90d, then 1h:forever".
std::string kept_text(const nlohmann::json& document, const char* keep, const char* then) {
  std::string text = text_field(document, keep);
  const auto tiers = document.find(then);
  if (tiers == document.end() || !tiers->is_array()) return text;
  for (const nlohmann::json& tier : *tiers) {
    if (tier.is_string()) text += ", then " + tier.get<std::string>();
  }
  return text;
}

int run_list(const RetentionArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.get_small(
      path_with(wire::routes::kRetention, {{"ns", arguments.namespaces.parameter()}}));
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) return print_document(*body);
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("rules"))
    return report_failure(io_error("the daemon's answer is no list"));
  Table table({{"NAMESPACE"}, {"SELECTOR"}, {"KEEP", Align::Right}}, stdout);
  for (const nlohmann::json& rule : document["rules"])
    table.row({text_field(rule, "namespace"), text_field(rule, "select"),
               kept_text(rule, "keep", "then")});
  table.row({"*", "everything else", kept_text(document, "default", "default_then")});
  table.flush();
  return finish_stdout();
}

// Whose readings they are, for messages.
std::string text_of(const RetentionArguments& arguments) {
  const std::vector<std::string>& selectors = arguments.selection.selectors;
  if (selectors.size() == 1) return selectors.front();
  if (selectors.empty()) return "these devices";
  const Result<wire::Selection> selection = wire::parse_selection(arguments.selection);
  return selection.ok() ? selection->text() : std::string();
}

// Whether to go on: asks where the preview of the change takes something.
Result<bool> may_change(DaemonClient& client, Parameters parameters,
                        const RetentionArguments& arguments, const char* change) {
  if (arguments.yes) return true;
  EC_ASSIGN_OR_RETURN(const std::string preview,
                      client.get_small(path_with(wire::routes::kRetentionPreview, parameters)));
  const nlohmann::json document = nlohmann::json::parse(preview, nullptr, false);
  if (!document.is_object()) return io_error("the daemon's answer is no object");
  const std::uint64_t erased = count_field(document, "erased_readings");
  const std::uint64_t thinned = count_field(document, "thinned_readings");
  const std::uint64_t windows = count_field(document, "erased_windows");
  if (erased == 0 && thinned == 0 && windows == 0) return true;
  std::string what;
  if (erased > 0 || windows == 0) {
    what = (thinned > 0 ? " makes windows of " + count_text(thinned)
                        : " erases " + count_text(erased)) +
           " of " + count_of(count_field(document, "readings"), "reading") + " of " +
           text_of(arguments);
    if (thinned == 0) what += " (" + wire::format_size(count_field(document, "erased_bytes")) + ")";
  }
  if (windows > 0)
    what += std::string(what.empty() ? "" : " and") + " erases " + count_of(windows, "window") +
            " of tiers";
  return confirmed(change + what + " at once", false);
}

bool is_duration(const std::string& text) {
  return text == "forever" || wire::parse_duration_ns(text).ok();
}

// The last word is how long, where it must be, or where others stand before it.
enum class Keep : unsigned char { Needed, Possible };
RetentionArguments in_place(RetentionArguments arguments, Keep keep) {
  std::vector<std::string>& words = arguments.selection.selectors;
  const bool has_others = words.size() > 1 || !arguments.filter.empty();
  if (words.empty() || !has_others) return arguments;
  if (keep == Keep::Possible && !is_duration(words.back())) return arguments;
  arguments.keep = words.back();
  words.pop_back();
  return arguments;
}

int run_set(const RetentionArguments& given) {
  const RetentionArguments arguments = in_place(given, Keep::Needed);
  if (arguments.keep.empty())
    return report_failure(invalid_argument("say how long: 30d, 12h, or forever"));
  if (const Status checked = check(arguments); !checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  Parameters parameters = parameters_of(arguments);
  const Result<bool> agreed = may_change(client, parameters, arguments, "this rule");
  if (!agreed.ok()) return report_failure(agreed.status());
  if (!*agreed) return wire::kExitUsage;
  parameters.emplace_back("yes", "true");
  const Result<std::string> body =
      client.post(path_with(wire::routes::kRetention, parameters), "", "text/plain");
  if (!body.ok()) return report_failure(body.status());
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (document.is_object() && number_field(document, "series") &&
      count_field(document, "series") == 0)
    print_error("edgecase: nothing of %s is stored yet; the rule holds when it comes\n",
                text_of(arguments).c_str());
  return arguments.json ? print_document(*body) : 0;
}

int run_clear(const RetentionArguments& arguments) {
  if (const Status checked = check(arguments); !checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  Parameters cleared = parameters_of(arguments);
  cleared.emplace_back("clear", "true");
  const Result<bool> agreed = may_change(client, cleared, arguments,
                                         "without this rule another "
                                         "one holds, which");
  if (!agreed.ok()) return report_failure(agreed.status());
  if (!*agreed) return wire::kExitUsage;
  const Result<std::string> body =
      client.remove(path_with(wire::routes::kRetention, parameters_of(arguments)));
  return body.ok() ? 0 : report_failure(body.status());
}

int run_preview(const RetentionArguments& given) {
  const RetentionArguments arguments = in_place(given, Keep::Possible);
  if (const Status checked = check(arguments); !checked.ok()) return report_failure(checked);
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.get_small(path_with(wire::routes::kRetentionPreview, parameters_of(arguments)));
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) return print_document(*body);
  nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  show_times_in(document, arguments.zone);
  if (!document.is_object() || !document.contains("affected"))
    return report_failure(io_error("the daemon's answer is no preview"));
  Table table({{"NAMESPACE"},
               {"SERIES"},
               {"KEEP NOW", Align::Right},
               {"THEN", Align::Right},
               {"ERASED", Align::Right},
               {"THINNED", Align::Right},
               {"WINDOWS ERASED", Align::Right},
               {"BYTES", Align::Right},
               {"OLDEST"},
               {"NEXT TO GO"}},
              stdout);
  for (const nlohmann::json& series : document["affected"]) {
    table.row({text_field(series, "namespace"),
               text_field(series, "device") + "/" + text_field(series, "sensor"),
               kept_text(series, "keep_now", "tiers_now"),
               kept_text(series, "keep_then", "tiers_then"),
               count_text(count_field(series, "erased_readings")),
               count_text(count_field(series, "thinned_readings")),
               count_text(count_field(series, "erased_windows")),
               wire::format_size(count_field(series, "erased_bytes")),
               or_dash(text_field(series, "oldest")), or_dash(text_field(series, "next"))});
  }
  table.flush();
  write_out(
      stdout,
      count_text(count_field(document, "erased_readings")) + " of " +
          count_of(count_field(document, "readings"), "reading") + " of " +
          count_text(count_field(document, "series")) + " series go at once (" +
          wire::format_size(count_field(document, "erased_bytes")) + "), the next " +
          (text_field(document, "next").empty() ? "never" : "at " + text_field(document, "next")) +
          "\n");
  if (const std::uint64_t thinned = count_field(document, "thinned_readings"); thinned > 0)
    write_out(stdout, count_of(thinned, "reading becomes", "readings become") + " windows\n");
  const auto tiers = document.find("tiers");
  for (const nlohmann::json& tier : tiers == document.end() ? nlohmann::json::array() : *tiers) {
    write_out(stdout, "tier " + printable(text_field(tier, "tier")) + ": about " +
                          count_of(count_field(tier, "windows"), "window") + ", " +
                          wire::format_size(count_field(tier, "bytes")) + "\n");
  }
  if (const std::uint64_t windows = count_field(document, "erased_windows"); windows > 0)
    write_out(stdout,
              count_of(windows, "window of tiers goes", "windows of tiers go") + " at once\n");
  if (const std::string note = erasure_level_note(document); !note.empty())
    write_out(stdout, printable(note) + "\n");
  return finish_stdout();
}

CLI::App* add(CLI::App& parent, Action& action, const char* name, const char* purpose,
              const char* example, const std::shared_ptr<RetentionArguments>& arguments,
              int (*run)(const RetentionArguments&)) {
  CLI::App* command = add_subcommand(parent, action, name, purpose, example, arguments, run);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  return command;
}

constexpr char kThenHowLong[] = ",\nthen how long: 30d, 12h, 1h30m, or forever";

void add_selector(CLI::App& command, RetentionArguments& arguments, const char* then = "") {
  add_selection(command, arguments.selection, WithoutSelection::Other, then);
  add_device_filter(command, arguments.filter, FilterNames::Plain);
}

void add_then(CLI::App& command, RetentionArguments& arguments) {
  command
      .add_option("--then", arguments.then,
                  "What readings become then: windows of so long, kept for so long. Each one is "
                  "coarser and kept longer than the one before. Default: nothing, they go")
      ->delimiter(',')
      ->type_name("EVERY:DURATION")
      ->allow_extra_args(false);
}

}  // namespace

void add_retention_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "retention", "How long readings are kept; of several rules the most specific one holds");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase retention set 'kitchen/*' 30d"}));

  const auto listed = std::make_shared<RetentionArguments>();
  CLI::App* list = add(*command, action, "list", "List rules and the default",
                       "edgecase retention list", listed, run_list);
  list->add_flag("--json", listed->json, "One JSON document. Default: text for people");

  const auto set = std::make_shared<RetentionArguments>();
  CLI::App* setting =
      add(*command, action, "set",
          "Set a rule, for readings stored already too; what has expired never "
          "comes back",
          "edgecase retention set 'kitchen/*' 7d --then 1m:90d --then 1h:forever", set, run_set);
  add_selector(*setting, *set, kThenHowLong);
  add_then(*setting, *set);
  setting->add_flag("--yes", set->yes,
                    "Do not ask; needed without a terminal where something would go. Default: ask");
  setting->add_flag("--json", set->json, "One JSON document. Default: text for people");

  const auto cleared = std::make_shared<RetentionArguments>();
  CLI::App* clearing = add(*command, action, "clear", "Clear a rule, as it was written",
                           "edgecase retention clear 'kitchen/*'", cleared, run_clear);
  add_selector(*clearing, *cleared);
  clearing->add_flag(
      "--yes", cleared->yes,
      "Do not ask; needed without a terminal where something would go. Default: ask");

  const auto previewed = std::make_shared<RetentionArguments>();
  CLI::App* preview = add(*command, action, "preview",
                          "What a rule would erase, how much, and when; without a duration: what "
                          "the rules that are set will",
                          "edgecase retention preview 'kitchen/*' 30d", previewed, run_preview);
  add_selector(*preview, *previewed, kThenHowLong);
  add_then(*preview, *previewed);
  preview->add_flag("--json", previewed->json, "One JSON document. Default: text for people");
  add_zone_options(*preview, previewed->zone);
}

}  // namespace edgecase::cli
