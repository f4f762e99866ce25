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
#include "sign/signature.h"
#include "target_file.h"
#include "wire/contract.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

using Json = nlohmann::json;

struct ReportArguments {
  ConnectionArguments connection;
  std::string owner;
  std::string verify, key;  // files
  bool public_key = false;
  bool json = false;
  Zone zone;
};

void print_title(const std::string& title) {
  write_out(stdout, "\n" + printable(title) + "\n");
}

Json list_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : Json::array();
}

// "12 devices, 40 series, 1,000 readings, 12 KiB, from ... to ...".
std::string amounts_text(const Json& stored) {
  std::string text = count_of(count_field(stored, "devices"), "device") + ", " +
                     count_text(count_field(stored, "series")) + " series, " +
                     count_of(count_field(stored, "readings"), "reading") + ", " +
                     wire::format_size(count_field(stored, "bytes"));
  if (const std::uint64_t windows = count_field(stored, "windows"); windows > 0)
    text += ", " + count_of(windows, "window") + " of tiers, " +
            wire::format_size(count_field(stored, "window_bytes"));
  const std::string oldest = text_field(stored, "oldest");
  if (!oldest.empty()) text += ", from " + oldest + " to " + text_field(stored, "newest");
  return text;
}

void print_features(const Json& report) {
  print_title("Features (response, capability)");
  Table table({{"FEATURE"}, {"RESPONSE"}, {"CAPABILITY"}, {"HOW, AND WHAT IS MISSING"}}, stdout);
  for (const Json& feature : list_of(report, "features")) {
    std::string how = text_field(feature, "how");
    const std::string missing = text_field(feature, "missing");
    if (!missing.empty()) how += (how.empty() ? "missing: " : "; missing: ") + missing;
    table.row({text_field(feature, "feature"), or_dash(text_field(feature, "response")),
               text_field(feature, "capability"), how});
  }
  table.flush();
}

// "Audit log: ends with record 120, hash 5f0a..."; nothing where there is no log.
void print_audit_head(const Json& report) {
  const auto audit = report.find("audit");
  if (audit == report.end() || !audit->is_object()) return;
  write_out(stdout, "\nAudit log: ends with record " +
                        std::to_string(count_field(*audit, "sequence")) + ", hash " +
                        printable(text_field(*audit, "head")) + "\n");
}

void print_signer(const Json& report) {
  const Json signature = report.value(sign::kSignatureMember, Json::object());
  const std::string fingerprint = text_field(signature, "fingerprint");
  if (const std::string why = text_field(report, "unsigned"); !why.empty())
    write_out(stdout, "Not signed: " + printable(why) + "\n");
  if (fingerprint.empty()) return;
  write_out(stdout, "Signed, in --json, by the key " + printable(fingerprint) + "\n");
}

void print_store(const Json& report) {
  write_out(stdout, "EdgeCase " + printable(text_field(report, "version")) + ", " +
                        printable(text_field(report, "made")) +
                        (report.value("clock_trusted", Json(true)) == Json(true)
                             ? "\n"
                             : " (the clock is not trusted: nothing expires)\n"));
  print_features(report);
  print_title("Stored: " + amounts_text(report.value("stored", Json::object())));
  const Json owners = list_of(report, "owners");
  if (!owners.empty()) {
    Table table({{"OWNER"},
                 {"DEVICES", Align::Right},
                 {"SERIES", Align::Right},
                 {"READINGS", Align::Right},
                 {"BYTES", Align::Right},
                 {"OLDEST"}},
                stdout);
    for (const Json& owner : owners) {
      table.row(
          {text_field(owner, "owner"), count_text(count_field(owner, "devices")),
           count_text(count_field(owner, "series")), count_text(count_field(owner, "readings")),
           wire::format_size(count_field(owner, "bytes")), or_dash(text_field(owner, "oldest"))});
    }
    table.flush();
  }
  const Json erasures = list_of(report, "erasures");
  if (!erasures.empty()) {
    print_title("Last erasures");
    Table table({{"ERASURE", Align::Right},
                 {"STATE"},
                 {"LEVEL"},
                 {"SERIES", Align::Right},
                 {"ASKED"},
                 {"GONE"}},
                stdout);
    for (const Json& each : erasures) {
      table.row({count_text(count_field(each, "id")), text_field(each, "state"),
                 or_dash(text_field(each, "level")), count_text(count_field(each, "series")),
                 text_field(each, "asked"), or_dash(text_field(each, "gone"))});
    }
    table.flush();
  }
  const Json rules = list_of(report, "retention");
  const Json settings = report.value("settings", Json::object());
  print_title("Kept: " + or_dash(text_field(settings, "storage.retention")) +
              (rules.empty() ? ", no other rule" : ", but"));
  if (rules.empty()) return;
  Table table({{"NAMESPACE"}, {"SELECTOR"}, {"KEEP"}}, stdout);
  for (const Json& rule : rules) {
    const std::string then = text_field(rule, "then");
    table.row({text_field(rule, "namespace"), text_field(rule, "select"),
               text_field(rule, "keep") + (then.empty() ? "" : ", then " + then)});
  }
  table.flush();
}

// Prints who said when what readings may be used for; the last row of a device is what holds.
void print_consents(const Json& report) {
  Table table({{"DEVICE"}, {"SINCE"}, {"SAID BY"}, {"PURPOSES"}, {"OBJECTIONS"}}, stdout);
  for (const Json& device : list_of(report, "devices")) {
    for (const Json& consent : list_of(device, "consents")) {
      table.row({text_field(device, "device"), text_field(consent, "since"),
                 text_field(consent, "by"), or_dash(words_field(consent, "purposes")),
                 or_dash(words_field(consent, "objections"))});
    }
  }
  if (table.rows() == 0) return;
  print_title("Consent");
  table.flush();
}

void print_owner(const Json& report) {
  write_out(stdout, printable("Owner " + text_field(report, "owner") + ": " +
                              amounts_text(report.value("stored", Json::object()))) +
                        "\n");
  Table devices({{"NAMESPACE"}, {"DEVICE"}, {"PURPOSES"}, {"OBJECTIONS"}, {"LOCATION"}}, stdout);
  Table series({{"SERIES"},
                {"READINGS", Align::Right},
                {"BYTES", Align::Right},
                {"OLDEST"},
                {"NEWEST"},
                {"KEEP"}},
               stdout);
  for (const Json& device : list_of(report, "devices")) {
    const std::string name = text_field(device, "device");
    devices.row({text_field(device, "namespace"), name, or_dash(words_field(device, "purposes")),
                 or_dash(words_field(device, "objections")),
                 or_dash(text_field(device, "location"))});
    for (const Json& row : list_of(device, "series")) {
      series.row({name + "/" + text_field(row, "sensor"), count_text(count_field(row, "readings")),
                  wire::format_size(count_field(row, "bytes")), or_dash(text_field(row, "oldest")),
                  or_dash(text_field(row, "newest")), text_field(row, "keep")});
    }
  }
  print_title("Devices");
  devices.flush();
  print_consents(report);
  if (series.rows() > 0) {
    print_title("Readings");
    series.flush();
  }
  if (report.value("automated_decisions", Json(false)) == Json(true))
    write_out(stdout, "\nA device decides by itself over people (automated-decisions=yes).\n");
  const Json recipients = list_of(report, "recipients");
  print_title(recipients.empty() ? "No token reaches them." : "Tokens that reach them");
  if (recipients.empty()) return;
  Table table({{"TOKEN"}, {"READ"}, {"EXPORT"}, {"PURPOSE"}, {"ENDS"}, {"LAST USED"}}, stdout);
  for (const Json& token : recipients) {
    const bool admin = token.value("admin", Json(false)) == Json(true);
    const auto scope = [&](const char* name) {
      return admin ? std::string("everything") : or_dash(scope_field(token, name));
    };
    table.row({text_field(token, "token"), scope("read"), scope("export"),
               or_dash(text_field(token, "purpose")), or_dash(text_field(token, "ends")),
               or_dash(text_field(token, "last_used"))});
  }
  table.flush();
}

// Certificates of erasures (erase --json) are signed as reports are.
void print_what_it_is(const Json& document) {
  if (document.contains("receipt")) {
    const Json summary = document.value("summary", Json::object());
    const bool is_same = document.value("checksum", "") == summary.value("checksum", "-");
    write_out(stdout, "Receipt of " + printable(text_field(summary, "device")) +
                          ", the hour from " + printable(text_field(summary, "hour")) + ": " +
                          std::to_string(count_field(summary, "readings")) + " readings sent, " +
                          std::to_string(count_field(document, "readings")) + " there, " +
                          (is_same ? "the same\n" : "not the same\n"));
    return;
  }
  const std::string owner = text_field(document, "owner");
  const std::string gone = text_field(document, "gone");
  const std::string level = text_field(document, "level");
  const std::string what =
      level == "physical" ? ", the bytes gone " : " (" + printable(level) + "), done ";
  write_out(stdout, gone.empty() ? "Report" + (owner.empty() ? "" : " of " + printable(owner)) +
                                       ", made " + printable(text_field(document, "made")) + "\n"
                                 : "Certificate " + std::to_string(count_field(document, "id")) +
                                       " of an erasure" + what + printable(gone) + "\n");
}

// Offline: neither daemon nor store is asked.
Status verify_file(const ReportArguments& arguments) {
  EC_ASSIGN_OR_RETURN(const std::string text, read_small_file(arguments.verify));
  const Json report = Json::parse(text, nullptr, false);
  if (!report.is_object()) return invalid_argument(arguments.verify + " is no JSON object");
  const Result<sign::Signer> signer = sign::check_signature(report);
  if (!signer.ok()) return signer.status().with_context(arguments.verify + ": ");
  // A receipt holds what the other store signed.
  std::string also;
  if (report.contains("receipt") && report.contains("summary")) {
    const Result<sign::Signer> sender = sign::check_signature(report["summary"]);
    if (!sender.ok()) return sender.status().with_context(arguments.verify + ": its summary: ");
    also = sender->public_key;
  }
  if (!arguments.key.empty()) {
    EC_ASSIGN_OR_RETURN(const std::string key, read_small_file(arguments.key));
    if (key != signer->public_key && key != also)
      return corruption(arguments.verify + " is signed by another key than " + arguments.key +
                        ": " + signer->fingerprint);
  }
  if (arguments.json) {
    write_out(stdout, Json{{"intact", true},
                           {"fingerprint", signer->fingerprint},
                           {"public_key", signer->public_key},
                           {"key_checked", !arguments.key.empty()}}
                              .dump() +
                          "\n");
    return ok();
  }
  print_what_it_is(report);
  print_audit_head(report);
  write_out(stdout, "Signed by the key " + signer->fingerprint + "\nintact: nothing was changed\n");
  if (arguments.key.empty())
    print_error(
        "edgecase: whose key that is, its store can say: edgecase report --public-key > key.pem "
        "there, and --key key.pem here\n");
  return ok();
}

int print_public_key(const ReportArguments& arguments) {
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.get_small(wire::routes::kReportKey);
  if (!body.ok()) return report_failure(body.status());
  const Json key = Json::parse(*body, nullptr, false);
  if (!key.is_object()) return report_failure(io_error("the daemon's answer is no object"));
  write_out(stdout, arguments.json ? *body : text_field(key, "public_key"));
  if (!arguments.json)
    print_error("fingerprint %s\n", printable(text_field(key, "fingerprint")).c_str());
  return finish_stdout();
}

int run_report(const ReportArguments& arguments) {
  if (!arguments.verify.empty()) {
    const Status verified = verify_file(arguments);
    return verified.ok() ? finish_stdout() : report_failure(verified);
  }
  if (arguments.public_key) return print_public_key(arguments);
  Parameters parameters;
  if (!arguments.owner.empty()) parameters.emplace_back("owner", arguments.owner);
  DaemonClient client(arguments.connection);
  const Result<std::string> body = client.get_small(path_with(wire::routes::kReport, parameters));
  if (!body.ok()) return report_failure(body.status());
  if (arguments.json) {
    write_out(stdout, *body);
    return finish_stdout();
  }
  Json report = Json::parse(*body, nullptr, false);
  show_times_in(report, arguments.zone);
  if (!report.is_object()) return report_failure(io_error("the daemon's answer is no object"));
  arguments.owner.empty() ? print_store(report) : print_owner(report);
  print_audit_head(report);
  print_signer(report);
  return finish_stdout();
}

}  // namespace

void add_report_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report", "What is stored of whom, why and until when; six features and their degree");
  CLI::Option* const owner = command->add_option(
      "--owner", arguments->owner, "Only the devices of this person. Default: everybody's");
  command->add_flag("--json", arguments->json, "One JSON document, signed");
  CLI::Option* const verify =
      command
          ->add_option(
              "--verify", arguments->verify,
              "Offline: whether anything in this report, certificate of erase, or receipt\n"
              "of forward --summaries, of --json, was changed since it was signed; exit\n"
              "code 7 if so")
          ->type_name("FILE")
          ->excludes(owner);
  command
      ->add_option("--key", arguments->key,
                   "With --verify: the public key that it must be signed by")
      ->type_name("FILE")
      ->needs(verify);
  command
      ->add_flag("--public-key", arguments->public_key,
                 "The key that this store's reports are signed by, for who verifies them")
      ->excludes(owner)
      ->excludes(verify);
  add_zone_options(*command, arguments->zone);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase report", "edgecase report --owner alice --json > alice.json",
                   "edgecase report --verify alice.json --key key.pem"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_report(*arguments); }; });
}

}  // namespace edgecase::cli
