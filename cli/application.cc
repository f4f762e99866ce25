#include "application.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "daemon_client.h"
#include "manual/command_tree.h"
#include "mended_line.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

// "list, create, drop"
std::string command_names(CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // hidden
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

// "edgecase config": the deepest command that the arguments reached.
CLI::App* deepest_command(CLI::App& app, std::string& path) {
  CLI::App* at = &app;
  path = "edgecase";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return at;
}

std::string did_you_mean(const std::string& word) {
  return word.empty() ? word : ", did you mean '" + word + "'?";
}

// "--svg needs a value, FILE" of the parser's "--svg: 1 required FILE missing"; else empty.
std::string missing_value(std::string_view said) {
  constexpr std::string_view kMiddle = ": 1 required ", kEnd = " missing";
  const std::size_t middle = said.find(kMiddle);
  if (middle == std::string_view::npos || !said.ends_with(kEnd)) return {};
  const std::size_t begin = middle + kMiddle.size();
  const std::string_view type = said.substr(begin, said.size() - kEnd.size() - begin);
  return std::string(said.substr(0, middle)) + " needs a value" +
         (type == "TEXT" ? "" : ", " + std::string(type));
}

// "unknown command 'quer'", "unknown option --form", "'21.5' is one word too many"; else what the
// parser says.
std::string problem_of(CLI::App& app, CLI::App& command, const CLI::ParseError& error,
                       const Command& root, const TypedWords& given) {
  const bool has_commands = !command.get_subcommands([](CLI::App*) { return true; }).empty();
  const auto first_word = [](const TypedWords& words) {
    return std::find_if(words.begin(), words.end(), [](const std::string& text) {
      return !text.empty() && text.front() != '-';
    });
  };
  if (has_commands && command.get_subcommands().empty()) {
    // The first word that is no option is what should have been a command.
    const TypedWords rest = command.remaining(true);
    const TypedWords& words = &command == &app ? given : rest;
    const auto word = first_word(words);
    if (word == words.end()) {
      return &command == &app ? "say what to do, as in edgecase last; edgecase help lists commands"
                              : "say which: " + command_names(command);
    }
    if (&command != &app) return "'" + *word + "' is none of " + command_names(command);
    return "unknown command '" + *word + "'" + did_you_mean(nearest_command(root, *word));
  }
  if (const std::string missing = missing_value(error.what()); !missing.empty()) return missing;
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return error.what();
  const UnknownOption option = unknown_option(root, given);
  if (!option.name.empty()) return "unknown option " + option.name + did_you_mean(option.near);
  const TypedWords rest = command.remaining(true);
  const auto word = first_word(rest);
  return word == rest.end() ? error.what() : "'" + *word + "' is one word too many";
}

// Whether the parser takes the line.
bool is_accepted(std::span<const AddCommand> commands, TypedWords words);

// What would have been right, on a line of its own. False: nothing is known.
bool print_mended(std::span<const AddCommand> commands, const TypedWords& mended) {
  if (mended.empty() || !is_accepted(commands, mended)) return false;
  print_error("  try: %s\n", shell_line(mended).c_str());
  return true;
}

int report_wrong_usage(std::span<const AddCommand> commands, CLI::App& app,
                       const CLI::ParseError& error, const TypedWords& given) {
  std::string path;
  CLI::App* command = deepest_command(app, path);
  const Command root = read_command_tree(app);
  const std::string problem = problem_of(app, *command, error, root, given);
  const TypedWords mended = mended_usage(root, given);
  const bool is_mended = !mended.empty() && is_accepted(commands, mended);
  const std::string help = is_mended ? "" : " (see " + path + " --help)";
  print_error("%s: %s%s\n", path.c_str(), problem.c_str(), help.c_str());
  if (is_mended) print_mended(commands, mended);
  return wire::kExitUsage;
}

// In words of the user's, and -1 is not the largest unsigned number there is, as the parser has it.
std::string problem_of_count(const std::string& text) {
  if (text.starts_with('-')) return text + " is negative, use a whole number";
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc::result_out_of_range) return text + " is too large";
  return error == std::errc() && at == end ? "" : "'" + text + "' is no whole number";
}

void check_counts(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    if (option->get_type_name().starts_with("UINT")) option->check(problem_of_count);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    check_counts(*command);
  }
}

void declare(std::span<const AddCommand> commands, CLI::App& app, Action& action) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "edgecase " + std::string(wire::version()));
  app.footer(help_footer({"edgecase query 'kitchen/*' --since 1h", "edgecase help query"}));
  app.get_formatter()->column_width(34);
  for (const AddCommand add : commands) add(app, action);
  check_counts(app);
}

constexpr const char* kPurpose = "EdgeCase: sensor readings, kept durable on two drives";

void parse(CLI::App& app, TypedWords words) {
  std::reverse(words.begin(), words.end());  // the order CLI11 wants
  app.parse(std::move(words));
}

bool is_accepted(std::span<const AddCommand> commands, TypedWords words) {
  CLI::App app(kPurpose, "edgecase");
  Action ignored;
  declare(commands, app, ignored);
  words = words_in_order(read_command_tree(app), std::move(words));
  try {
    parse(app, std::move(words));
  } catch (const CLI::Success&) {
    return true;  // help
  } catch (const CLI::ParseError&) {
    return false;
  }
  return true;
}

// `edgecase help query` as people type it. False: there is no such command, which is said.
bool take_help(const Command& root, TypedWords& words) {
  if (words.empty() || words.front() != "help") return true;
  words.erase(words.begin());
  const std::string word = words.empty() ? "" : words.front();
  const bool is_known =
      word.empty() || word.front() == '-' ||
      std::any_of(root.commands.begin(), root.commands.end(),
                  [&word](const Command& command) { return command.name() == word; });
  if (is_known) {
    words.emplace_back("--help");
    return true;
  }
  const std::string near = nearest_command(root, word);
  print_error("edgecase: there is no command '%s'\n  try: edgecase help%s\n", word.c_str(),
              near.empty() ? "" : (" " + near).c_str());
  return false;
}

// Sets `action`, or does all there is to do and answers the exit code. `arguments` come back in the
// order of the parser.
int parse_arguments(std::span<const AddCommand> commands, TypedWords& arguments, Action& action) {
  CLI::App app(kPurpose, "edgecase");
  declare(commands, app, action);
  const Command root = read_command_tree(app);
  if (!take_help(root, arguments)) return wire::kExitUsage;
  arguments = words_in_order(root, std::move(arguments));
  if (const ForgottenValue forgotten = forgotten_value(root, arguments);
      !forgotten.problem.empty()) {
    print_error("%s: %s\n", TypedLine(root, arguments).command->path.c_str(),
                forgotten.problem.c_str());
    print_mended(commands, forgotten.meant);
    return wire::kExitUsage;
  }
  try {
    parse(app, arguments);
  } catch (const CLI::CallForHelp&) {
    std::string path;
    const CLI::App* command = deepest_command(app, path);
    // CLI11 puts the command's own name behind what it is given, but not the program's.
    path.resize(command == &app ? 0 : path.rfind(' '));
    write_out(stdout, command->help(path) + "\n");
  } catch (const CLI::CallForAllHelp&) {
    write_out(stdout, app.help("", CLI::AppFormatMode::All));
  } catch (const CLI::CallForVersion& version) {
    write_out(stdout, std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    return report_wrong_usage(commands, app, error, arguments);
  }
  // The parser took a part of a value, or a dash of a document, for a selector.
  if (const TypedWords mended = mended_blanks(root, arguments); action && mended != arguments) {
    print_error("edgecase: a value with a blank in it needs quotes, an option two plain dashes\n");
    print_mended(commands, mended);
    action = nullptr;
    return wire::kExitUsage;
  }
  return wire::kExitOk;
}

bool is_path(const std::string& word) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(word, error));
}

// A command that ran and was refused, or found nothing: how it was probably meant.
void suggest_after(std::span<const AddCommand> commands, const TypedWords& words, int exit_code) {
  if (words.empty() || words.front() == "serve") return;
  CLI::App app(kPurpose, "edgecase");
  Action ignored;
  declare(commands, app, ignored);
  const Command root = read_command_tree(app);
  if (const std::string line = sql_line(words); !line.empty()) {
    print_error("  try: %s\n", line.c_str());
    return;
  }
  if (exit_code == wire::kExitUsage) print_mended(commands, mended_usage(root, words));
  if (exit_code == wire::kExitUnreachable) print_mended(commands, mended_address(root, words));
  if (exit_code == wire::kExitNotFound || exit_code == wire::kExitPartly || is_nothing_found())
    print_mended(commands, mended_names(root, words, is_path));
}

}  // namespace

int run_application(std::span<const AddCommand> commands, std::vector<std::string> arguments) {
  Action action;
  const int exit_code = parse_arguments(commands, arguments, action);
  static_cast<void>(take_exit_code_of_answers());
  forget_suggestions();
  int done = action ? action() : exit_code;
  // Done, but for what is damaged.
  if (const int left_out = take_exit_code_of_answers();
      left_out != wire::kExitOk && (done == wire::kExitOk || done == wire::kExitPartly))
    done = left_out;
  // What a command printed and never looked at: a full drive is told by whatever it printed.
  const int printed = finish_stdout();
  if (action && (done != wire::kExitOk || is_nothing_found()))
    suggest_after(commands, arguments, done);
  return done != wire::kExitOk ? done : printed;
}

int run_application(std::span<const AddCommand> commands, int argument_count, char** arguments) {
  std::vector<std::string> words(arguments + std::min(1, argument_count),
                                 arguments + argument_count);
  if (argument_count > 0) {
    const std::string_view program(arguments[0]);
    const std::size_t slash = program.rfind('/');
    const std::string_view name =
        slash == std::string_view::npos ? program : program.substr(slash + 1);
    const bool is_asked = words.size() == 1 && words.front() == "--version";
    if (name == "edgecased" && !is_asked) words.insert(words.begin(), "serve");
  }
  return run_application(commands, std::move(words));
}

}  // namespace edgecase::cli
