#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "target_file.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

struct AuditArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string from, to, device, owner;
  std::string limit;
  bool descending = false;
  bool subjects = false;
  bool verify = false;
  std::string report;  // a file
  bool json = false;
  Zone zone;
};

constexpr std::size_t kTerminalRows = 1'000;

// Each line of the answer is one record, so that a long log is taken as it comes.
class RecordLines {
 public:
  explicit RecordLines(std::function<void(nlohmann::json)> record) : record_(std::move(record)) {}

  void take(std::string_view piece) {
    input_ += piece;
    std::size_t at = 0;
    for (std::size_t end = input_.find('\n'); end != std::string::npos;
         end = input_.find('\n', at)) {
      take_line(std::string_view(input_).substr(at, end - at));
      at = end + 1;
    }
    input_.erase(0, at);
  }

 private:
  // A record, and behind it a comma or the end of the list.
  void take_line(std::string_view line) {
    if (!line.starts_with("{\"sequence\"")) return;
    line = line.substr(0, line.rfind("\"}") + 2);
    nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_object()) record_(std::move(record));
  }

  const std::function<void(nlohmann::json)> record_;
  std::string input_;
};

// Owners whose data was touched, as somebody who has to tell them wants to know it.
class Subjects {
 public:
  void add(const nlohmann::json& record) {
    if (text_field(record, "result") != "ok") return;
    const auto devices = record.find("devices");
    if (devices == record.end() || !devices->is_array()) return;
    std::set<std::string> owners;
    for (const nlohmann::json& device : *devices) {
      std::string owner = text_field(device, "owner");
      found_[owner].devices.insert(text_field(device, "pseudonym"));
      owners.insert(std::move(owner));
    }
    const std::string time = text_field(record, "time");
    for (const std::string& owner : owners) {
      Subject& subject = found_[owner];
      ++subject.records;
      if (subject.first.empty() || time < subject.first) subject.first = time;
      subject.last = std::max(subject.last, time);
    }
    if (count_field(record, "more_devices") > 0) ++reaching_more_;
  }

  int print(bool as_json) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    Table table(
        {{"OWNER"}, {"DEVICES", Align::Right}, {"RECORDS", Align::Right}, {"FIRST"}, {"LAST"}},
        stdout);
    for (const auto& [owner, subject] : found_) {
      list.push_back({{"owner", owner},
                      {"devices", subject.devices.size()},
                      {"records", subject.records},
                      {"first", subject.first},
                      {"last", subject.last}});
      if (!as_json)
        table.row({or_dash(owner), count_text(subject.devices.size()), count_text(subject.records),
                   subject.first, subject.last});
    }
    if (as_json) {
      const nlohmann::ordered_json document = {{"subjects", std::move(list)},
                                               {"records_reaching_more", reaching_more_}};
      return print_document(document.dump());
    }
    table.flush();
    if (reaching_more_ > 0)
      print_error("edgecase: %s records reached more devices than they name\n",
                  count_text(reaching_more_).c_str());
    return finish_stdout();
  }

 private:
  struct Subject {
    std::set<std::string> devices;
    std::uint64_t records = 0;
    std::string first, last;
  };
  std::map<std::string, Subject> found_;  // "": of devices without an owner, or erased by now
  std::uint64_t reaching_more_ = 0;
};

class RecordTable {
 public:
  RecordTable()
      : table_({{"SEQUENCE", Align::Right},
                {"TIME"},
                {"ACTOR"},
                {"OPERATION"},
                {"RESULT"},
                {"NAMESPACE"},
                {"TARGET"},
                {"OWNER"},
                {"COUNT", Align::Right},
                {"DETAIL"}},
               stdout) {}

  void flush() { table_.flush(); }
  std::size_t rows() const { return rows_; }

  void add(const nlohmann::json& record) {
    ++rows_;
    const bool trusted = record.value("clock_trusted", true);
    table_.row({std::to_string(count_field(record, "sequence")),
                text_field(record, "time") + (trusted ? "" : "?"), text_field(record, "actor"),
                text_field(record, "operation"), text_field(record, "result"),
                or_dash(text_field(record, "namespace")), target_of(record), owner_of(record),
                std::to_string(count_field(record, "count")), text_field(record, "detail")});
  }

 private:
  // A device by its name while there is one, else by its pseudonym.
  static std::string target_of(const nlohmann::json& record) {
    const std::string selector = text_field(record, "select");
    const auto devices = record.find("devices");
    if (devices == record.end() || devices->empty()) return or_dash(selector);
    const nlohmann::json& first = devices->front();
    const std::string name = text_field(first, "device");
    std::string text = name.empty() ? "~" + text_field(first, "pseudonym") : name;
    const std::size_t slash = selector.find('/');
    // The devices say more than several selectors.
    if (slash != std::string::npos && selector.find(", ") == std::string::npos)
      text += selector.substr(slash);
    const std::uint64_t more = devices->size() - 1 + count_field(record, "more_devices");
    if (more > 0) text += " and " + std::to_string(more) + " more";
    return text;
  }

  // The owner of the record's devices, as far as they are there and somebody is said to own them.
  static std::string owner_of(const nlohmann::json& record) {
    std::set<std::string> owners;
    for (const nlohmann::json& device : record.value("devices", nlohmann::json::array())) {
      if (std::string owner = text_field(device, "owner"); !owner.empty())
        owners.insert(std::move(owner));
    }
    if (owners.empty()) return "-";
    std::string text = *owners.begin();
    if (owners.size() > 1) text += " and " + std::to_string(owners.size() - 1) + " more";
    return text;
  }

  Table table_;
  std::size_t rows_ = 0;
};

// Where the log had come to when that report was made.
Result<Parameters> told_by_report(const std::string& path) {
  EC_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
  const nlohmann::json report = nlohmann::json::parse(text, nullptr, false);
  if (!report.is_object()) return invalid_argument(path + " is no JSON object");
  const nlohmann::json head = report.value("audit", nlohmann::json());
  if (!head.is_object() || text_field(head, "head").empty())
    return invalid_argument(path + " is no report that tells of an audit log");
  return Parameters{{"sequence", std::to_string(count_field(head, "sequence"))},
                    {"head", text_field(head, "head")}};
}

int run_verify(const AuditArguments& arguments) {
  Parameters parameters;
  if (!arguments.report.empty()) {
    Result<Parameters> told = told_by_report(arguments.report);
    if (!told.ok()) return report_failure(told.status());
    parameters = std::move(told).value();
  }
  DaemonClient client(arguments.connection);
  const Result<std::string> body =
      client.get_small(path_with(wire::routes::kAuditVerify, parameters));
  if (!body.ok()) return report_failure(body.status());
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object() || !document.contains("intact")) {
    return report_failure(io_error("the daemon's answer is no verification"));
  }
  const bool intact = document.value("intact", false);
  const std::string unchecked = text_field(document, "unchecked");
  if (arguments.json) {
    const int printed = print_document(*body);
    if (!intact) return wire::kExitCorruption;
    return printed == wire::kExitOk && !unchecked.empty() ? wire::kExitPartly : printed;
  }
  write_out(stdout, std::to_string(count_field(document, "records")) + " records, " +
                        std::to_string(count_field(document, "first")) + " to " +
                        std::to_string(count_field(document, "last")) + ", head " +
                        text_field(document, "head") + "\n");
  if (!unchecked.empty()) {
    write_out(stdout, "unchecked: " + printable(unchecked) + "\n");
  }
  if (intact && !unchecked.empty()) {
    write_out(stdout,
              "what is there was not changed or reordered; of what is unchecked nobody can say\n");
    const int printed = finish_stdout();
    return printed == wire::kExitOk ? wire::kExitPartly : printed;
  }
  if (intact) {
    write_out(stdout, "intact: nothing was removed, changed or reordered\n");
    return finish_stdout();
  }
  for (const nlohmann::json& fault : document["faults"]) {
    write_out(stdout, "fault at " + std::to_string(count_field(fault, "sequence")) + ": " +
                          printable(text_field(fault, "message")) + "\n");
  }
  static_cast<void>(finish_stdout());
  print_error("edgecase: the audit log is not intact: %llu faults\n",
              static_cast<unsigned long long>(count_field(document, "fault_count")));
  return wire::kExitCorruption;
}

int run_audit(const AuditArguments& arguments) {
  if (arguments.verify) return run_verify(arguments);
  Parameters parameters;
  if (!arguments.device.empty()) {
    parameters.emplace_back("ns", arguments.namespaces.parameter());
    parameters.emplace_back("device", arguments.device);
  }
  for (const auto& [name, text] :
       {std::pair("owner", &arguments.owner), std::pair("from", &arguments.from),
        std::pair("to", &arguments.to), std::pair("limit", &arguments.limit)}) {
    if (text->empty()) continue;
    const bool is_time = text == &arguments.from || text == &arguments.to;
    parameters.emplace_back(name, is_time ? sent_time(*text, arguments.zone) : *text);
  }
  if (arguments.descending) parameters.emplace_back("desc", "true");
  const bool shortened =
      !arguments.json && !arguments.subjects && arguments.limit.empty() && is_terminal(stdout);
  if (shortened) parameters.emplace_back("limit", std::to_string(kTerminalRows));
  DaemonClient client(arguments.connection);
  RecordTable table;
  Subjects subjects;
  RecordLines lines([&](nlohmann::json record) {
    show_times_in(record, arguments.zone);
    arguments.subjects ? subjects.add(record) : table.add(record);
  });
  const Status status =
      client.get(path_with(wire::routes::kAudit, parameters), [&](std::string_view piece) {
        if (arguments.json && !arguments.subjects) return write_out(stdout, piece);
        lines.take(piece);
        return true;
      });
  if (!status.ok()) return report_failure(status);
  if (arguments.subjects) return subjects.print(arguments.json);
  table.flush();
  if (shortened && table.rows() == kTerminalRows) {
    print_error("%zu records shown; --limit for more, --desc for the newest\n", table.rows());
  }
  return finish_stdout();
}

}  // namespace

void add_audit_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command = app.add_subcommand(
      "audit", "Who did what to which data: the audit log, and whether anybody changed it");
  command
      ->add_option("--from", arguments->from,
                   "First time, as in -1d or yesterday. Default: the beginning")
      ->type_name("TIME");
  command->add_option("--to", arguments->to, "End, itself not included. Default: none")
      ->type_name("TIME");
  command->add_option("--device", arguments->device,
                      "Records of this device, and those that may have reached it");
  command->add_option("--owner", arguments->owner,
                      "Records that name this owner, or are of its devices or may be, also of "
                      "those erased by owner");
  command->add_option("--limit", arguments->limit, "At most so many records. Default: all")
      ->type_name("N");
  command->add_flag("--desc", arguments->descending, "Newest first. Default: oldest first");
  command->add_flag("--subjects", arguments->subjects,
                    "Whose data the records touched, a row an owner: devices, records, first and\n"
                    "last time");
  CLI::Option* const verify = command->add_flag(
      "--verify", arguments->verify,
      "Find any record that was removed, changed or reordered; exit code 7 if so, 6 "
      "while the values drive, and with it the log's head there, is away");
  command
      ->add_option("--report", arguments->report,
                   "With --verify: also whether the log still holds what it did when this report\n"
                   "was made (report --json); 6 where that is so old that it was cut off")
      ->type_name("FILE")
      ->needs(verify);
  command->add_flag("--json", arguments->json, "One JSON document. Default: text for people");
  add_zone_options(*command, arguments->zone);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::NotAllowed);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase audit --from -1d --device kitchen",
                   "edgecase audit --from 2026-11-20 --subjects", "edgecase audit --verify"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_audit(*arguments); }; });
}

}  // namespace edgecase::cli
