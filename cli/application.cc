#include "application.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "daemon_client.h"
#include "help_text.h"
#include "left_out.h"
#include "output.h"
#include "reading_output.h"
#include "wire/errors.h"
#include "wire/suggest.h"
#include "wire/version.h"

namespace edgecase::cli {
namespace {

// What to say of a word that should have been one of the program's many commands.
std::string unknown_command(CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view nearest = wire::nearest_word(word, known);
  std::string message = "unknown command '" + word + "'";
  if (!nearest.empty()) message.append(", did you mean '").append(nearest).append("'?");
  return message;
}

// "list, create, drop"
std::string command_names(CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
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

int report_wrong_usage(CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& arguments) {
  std::string path;
  CLI::App* command = deepest_command(app, path);
  std::string message = error.what();

  const auto has_commands = !command->get_subcommands([](CLI::App*) { return true; }).empty();
  if (has_commands && command->get_subcommands().empty()) {
    // The first word that is no option is what should have been a command.
    const std::vector<std::string> rest = command->remaining(true);
    const std::vector<std::string>& words = command == &app ? arguments : rest;
    if (command != &app && rest.empty()) message = "say which: " + command_names(*command);
    const auto word = std::find_if(words.begin(), words.end(), [](const std::string& text) {
      return !text.empty() && text.front() != '-';
    });
    if (word != words.end()) {
      message = command == &app ? unknown_command(app, *word)
                                : "'" + *word + "' is none of " + command_names(*command);
    }
  }
  print_error("%s: %s (see %s --help)\n", path.c_str(), message.c_str(), path.c_str());
  return wire::kExitUsage;
}

// The parser takes "-1" for the largest unsigned number there is.
void refuse_negative_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    if (!option->get_type_name().starts_with("UINT")) continue;
    option->check([](const std::string& text) {
      return text.starts_with('-') ? text + " is negative, use a whole number" : std::string();
    });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    refuse_negative_numbers(*command);
  }
}

// The parser takes words in brackets for a list, where several words may stand: a device of such a
// name is written with an escape, which selectors have.
void keep_brackets(CLI::App& app, std::vector<std::string>& words) {
  CLI::App* command = &app;
  const CLI::Option* awaits = nullptr;  // its value
  for (std::string& word : words) {
    const CLI::Option* const before = std::exchange(awaits, nullptr);
    if (word.starts_with('-')) {
      const CLI::Option* const option = command->get_option_no_throw(word);
      if (option != nullptr && option->get_items_expected_min() > 0) awaits = option;
      continue;
    }
    if (before != nullptr) continue;
    const std::vector<CLI::App*> inner =
        command->get_subcommands([&word](CLI::App* each) { return each->check_name(word); });
    if (!inner.empty()) {
      command = inner.front();
    } else if (word.starts_with('[') && word.ends_with(']') &&
               command->get_option_no_throw("selector") != nullptr) {
      word.insert(0, "\\");
    }
  }
}

// Sets `action`, or does all there is to do and answers the exit code.
int parse_arguments(std::span<const AddCommand> commands, std::vector<std::string> arguments,
                    Action& action) {
  CLI::App app("EdgeCase: sensor readings, kept durable on two drives", "edgecase");
  app.require_subcommand(1);
  app.set_version_flag("--version", "edgecase " + std::string(wire::version()));
  app.footer(help_footer({"edgecase query 'kitchen/*' --since 1h"}));
  app.get_formatter()->column_width(34);
  for (const AddCommand add : commands) add(app, action);
  refuse_negative_numbers(app);

  keep_brackets(app, arguments);
  const std::vector<std::string> given = arguments;
  std::reverse(arguments.begin(), arguments.end());  // the order CLI11 wants
  try {
    app.parse(std::move(arguments));
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
    return report_wrong_usage(app, error, given);
  }
  return wire::kExitOk;
}

}  // namespace

int run_application(std::span<const AddCommand> commands, std::vector<std::string> arguments) {
  Action action;
  const int exit_code = parse_arguments(commands, std::move(arguments), action);
  static_cast<void>(take_exit_code_of_answers());
  int done = action ? action() : exit_code;
  // Done, but for what is damaged.
  if (const int left_out = take_exit_code_of_answers();
      left_out != wire::kExitOk && (done == wire::kExitOk || done == wire::kExitPartly))
    done = left_out;
  // What a command printed and never looked at: a full drive is told by whatever it printed.
  const int printed = finish_stdout();
  return done != wire::kExitOk ? done : printed;
}

int run_application(std::span<const AddCommand> commands, int argument_count, char** arguments) {
  std::vector<std::string> words(arguments + std::min(1, argument_count),
                                 arguments + argument_count);
  // `edgecase help query` as people type it.
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
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
