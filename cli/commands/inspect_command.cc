#include "edgecase/inspect.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands/commands.h"
#include "edgecase/file_system.h"
#include "help_text.h"
#include "json_text.h"
#include "output.h"
#include "reading_output.h"
#include "setting_flags.h"
#include "wire/errors.h"

namespace edgecase::cli {
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
