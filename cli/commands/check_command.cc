#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/store_faults.h"
#include "application.h"
#include "bench/processes.h"
#include "command_options.h"
#include "edgecase/file_system.h"
#include "edgecase/store_check.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

struct CheckArguments {
  SettingArguments settings;
  bool repair = false;
  bool json = false;
};

const char* kind_name(CheckFinding::Kind kind) {
  switch (kind) {
    case CheckFinding::Kind::Note: return "note";
    case CheckFinding::Kind::Problem: return "problem";
    case CheckFinding::Kind::Repair: return "repair";
    case CheckFinding::Kind::Loss: return "loss";
  }
  return "note";
}

// One line a finding on stdout, or all of them in one document at the end; the progress on stderr.
class CheckOutput final : public CheckObserver {
 public:
  explicit CheckOutput(bool json) : json_(json), progress_("checking", 0, "bytes") {}

  void on_finding(const CheckFinding& finding) override {
    lost_.insert(lost_.end(), finding.lost.begin(), finding.lost.end());
    say(finding.kind, finding.message);
  }
  void on_progress(std::uint64_t done_bytes, std::uint64_t) override {
    progress_.add(done_bytes - done_bytes_, done_bytes - done_bytes_);
    done_bytes_ = done_bytes;
  }
  bool stop() override { return bench::interrupted(); }

  // After the repair: whose readings were among what was lost.
  void name_lost_readings(const Options& options) {
    if (lost_.empty()) return;
    for (const std::string& line : app::lost_readings(posix_file_system(), options, lost_))
      say(CheckFinding::Kind::Loss, line);
  }

  // How many faults there are. Records that are gone nobody makes anew: for a repair they are lost.
  std::uint64_t tell_audit_faults(const Options& options, CheckFinding::Kind kind) {
    const auto faults = app::audit_faults(posix_file_system(), options);
    // What keeps it from being read was told, as a problem of the store.
    if (!faults.ok()) return 0;
    for (const std::string& fault : *faults) say(kind, "audit log: " + fault);
    return faults->size();
  }

  void finish(const CheckReport& report) {
    progress_.finish();
    if (json_) {
      const nlohmann::json document = {{"findings", findings_},
                                       {"metadata_tables", report.tables},
                                       {"value_tables", report.value_tables},
                                       {"items", report.items},
                                       {"entries", report.entries},
                                       {"wal_segments", report.wal_segments},
                                       {"wal_records", report.wal_records},
                                       {"bytes", report.bytes},
                                       {"notes", report.notes},
                                       {"problems", report.problems},
                                       {"repairs", report.repairs},
                                       {"losses", report.losses}};
      write_out(stdout,
                document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
      return;
    }
    print_error(
        "%s metadata tables, %s value tables, %s entries, %s WAL records: %s problems, "
        "%s notes\n",
        count_text(report.tables).c_str(), count_text(report.value_tables).c_str(),
        count_text(report.entries).c_str(), count_text(report.wal_records).c_str(),
        count_text(report.problems).c_str(), count_text(report.notes).c_str());
  }

 private:
  void say(CheckFinding::Kind kind, const std::string& message) {
    if (json_) {
      findings_.push_back({{"kind", kind_name(kind)}, {"message", message}});
      return;
    }
    progress_.finish();
    write_out(stdout, std::string(kind_name(kind)) + ": " + printable(message) + "\n");
  }

  const bool json_;
  Progress progress_;
  std::uint64_t done_bytes_ = 0;
  nlohmann::json findings_ = nlohmann::json::array();
  std::vector<LostEntries> lost_;
};

int run_check(const CheckArguments& arguments) {
  const Result<Options> options = load_store_options(arguments.settings);
  if (!options.ok()) {
    print_error("%s\n", options.status().message().c_str());
    return wire::kExitUsage;
  }
  bench::watch_for_interrupt();
  CheckOutput output(arguments.json);
  Result<CheckReport> report = arguments.repair
                                   ? repair_store(posix_file_system(), *options, output)
                                   : check_store(posix_file_system(), *options, output);
  if (!report.ok()) {
    // A drive that is not there is no daemon that is not there.
    const int exit_code = report_failure(report.status());
    return exit_code == wire::kExitUnreachable ? wire::kExitFailed : exit_code;
  }
  output.name_lost_readings(*options);
  const auto audit_kind = arguments.repair ? CheckFinding::Kind::Loss : CheckFinding::Kind::Problem;
  const std::uint64_t audit_faults = output.tell_audit_faults(*options, audit_kind);
  report->problems += audit_faults;
  if (arguments.repair) report->losses += audit_faults;
  output.finish(*report);
  const int finished = finish_stdout();
  if (finished != wire::kExitOk) return finished;
  if (report->problems == 0) return wire::kExitOk;
  if (!arguments.repair) return wire::kExitCorruption;
  std::fputs(report->losses == 0 ? "repaired; nothing was lost\n"
                                 : "repaired; what was lost is listed above\n",
             stderr);
  return report->losses == 0 ? wire::kExitOk : wire::kExitPartly;
}

}  // namespace

void add_check_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand(
      "check", "Check every checksum and reference of a store on both drives; offline");
  command->add_flag("--repair", arguments->repair,
                    "Make damaged metadata anew from the values; what was damaged is kept aside");
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_directory_options(*command, arguments->settings);
  command->footer(
      "The daemon must not run. Without --repair nothing is changed; 7 says that there is damage.\n"
      "With --repair, 0 says that nothing was lost, 6 that something was: each loss is a "
      "line.\n\n" +
      help_footer({"edgecase check --metadata ./meta --values ./values",
                   "edgecase check --repair --config /etc/edgecase/edgecase.toml"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_check(*arguments); }; });
}

namespace {

struct InspectArguments {
  SettingArguments settings;
  std::vector<std::string> files;
  bool summary = false;
  bool json = false;
};

// Lines of "name: value"; numbers become numbers, a name that comes again a list.
nlohmann::json facts_json(const std::string& facts) {
  nlohmann::json document = nlohmann::json::object();
  for (std::size_t begin = 0; begin < facts.size();) {
    const std::size_t end = std::min(facts.find('\n', begin), facts.size());
    const std::string line = facts.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = line.find(": ");
    const std::string name = line.substr(0, colon);
    const std::string text = colon == std::string::npos ? "" : line.substr(colon + 2);
    const bool digits = !text.empty() && text.size() < 20 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    nlohmann::json value = text;
    // A key is digits too; what is counted never begins with a zero.
    if (digits && (text.size() == 1 || text[0] != '0') && name.find("key") == std::string::npos)
      value = std::stoull(text);
    if (name == "note") {
      document["notes"].push_back(std::move(value));
    } else {
      document[name] = std::move(value);
    }
  }
  return document;
}

// Answers the exit code for one file or store.
int show(const std::string& path, const Result<std::string>& facts, bool with_title,
         nlohmann::json* documents) {
  if (documents != nullptr) {
    nlohmann::json document;
    document["file"] = path;
    if (facts.ok()) {
      document["facts"] = facts_json(*facts);
    } else {
      document["error"] = {{"code", wire::error_code_name(facts.status().code())},
                           {"message", facts.status().message()}};
    }
    documents->push_back(std::move(document));
  } else if (facts.ok()) {
    write_out(stdout, (with_title ? printable(path) + "\n" : std::string()) + *facts);
  }
  if (facts.ok()) return wire::kExitOk;
  const int exit_code = report_failure(facts.status());
  return exit_code == wire::kExitUnreachable ? wire::kExitFailed : exit_code;
}

// What is encrypted needs the settings for its key; nothing else needs any.
Result<std::string> inspect(const SettingArguments& settings, const std::string& path) {
  auto facts = inspect_file(posix_file_system(), path);
  if (facts.status().code() != StatusCode::NotAllowed) return facts;
  const Result<Options> options = load_store_options(settings);
  if (!options.ok()) return options.status();
  return inspect_file(posix_file_system(), path, *options);
}

int run_inspect(const InspectArguments& arguments) {
  if (arguments.files.empty() && !arguments.summary) {
    print_error("edgecase inspect: a file or --summary is needed (see edgecase inspect --help)\n");
    return wire::kExitUsage;
  }
  nlohmann::json documents = nlohmann::json::array();
  nlohmann::json* const json = arguments.json ? &documents : nullptr;
  int exit_code = wire::kExitOk;
  for (const std::string& path : arguments.files) {
    const int shown =
        show(path, inspect(arguments.settings, path), arguments.files.size() > 1, json);
    // Damage says more than a file that is not there.
    exit_code = std::max(exit_code, shown);
  }
  if (arguments.summary) {
    const Result<Options> options = load_store_options(arguments.settings);
    if (!options.ok()) {
      print_error("%s\n", options.status().message().c_str());
      return wire::kExitUsage;
    }
    exit_code = std::max(
        exit_code, show(options->metadata_directory, inspect_store(posix_file_system(), *options),
                        !arguments.files.empty(), json));
  }
  if (json != nullptr) {
    const bool one = documents.size() == 1;
    write_out(stdout, (one ? documents[0] : documents)
                              .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                          "\n");
  }
  const int finished = finish_stdout();
  return exit_code != wire::kExitOk ? exit_code : finished;
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Say in words what a file of the store holds, and where it is damaged; offline");
  command
      ->add_option("file", arguments->files,
                   "IDENTITY, CURRENT, KEYS-<n>, a manifest, a WAL slot, a .meta or a .val file")
      ->type_name("FILE");
  command->add_flag("--summary", arguments->summary, "The whole store at a glance");
  command->add_flag("--json", arguments->json, "One JSON document; of several files a list");
  add_directory_options(*command, arguments->settings);
  command->footer(help_footer({"edgecase inspect /var/lib/edgecase/tables/000000000001.meta",
                               "edgecase inspect --summary --metadata ./meta --values ./values"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_inspect(*arguments); }; });
}

}  // namespace edgecase::cli
