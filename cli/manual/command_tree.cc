#include "manual/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace edgecase::cli {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The library tells choices only inside the type's name: "TEXT:{csv,line}"; settings have
// "bounded|exact".
void read_value(std::string_view type, CommandOption& option) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open != std::string_view::npos && close != std::string_view::npos && open < close) {
    option.choices = split(type.substr(open + 1, close - open - 1), ',');
  } else if (type.find('|') != std::string_view::npos) {
    option.choices = split(type, '|');
  }
  // Behind the colon are conditions: "INT:NONNEGATIVE", "TEXT:DIR".
  const std::size_t colon = type.find(':');
  option.value = type.substr(0, colon);
  if (colon != std::string_view::npos && type.substr(colon + 1) == "DIR") option.value = "DIR";
  if (option.value.empty()) option.value = "TEXT";
}

CommandOption read_option(const CLI::Option& from) {
  CommandOption option;
  for (const std::string& name : from.get_snames()) option.names.push_back("-" + name);
  for (const std::string& name : from.get_lnames()) option.names.push_back("--" + name);
  option.positional = option.names.empty();
  if (option.positional) option.names.push_back(from.get_name(true));
  if (from.get_items_expected_max() > 0) read_value(from.get_type_name(), option);
  option.help = from.get_description();
  option.group = from.get_group();
  option.required = from.get_required();
  option.optional = !option.value.empty() && from.get_items_expected_min() == 0;
  option.repeated = option.positional && from.get_items_expected_max() > 1;
  return option;
}

// What help_footer() made, taken apart again.
void read_footer(const std::string& footer, Command& command) {
  bool in_examples = false;
  for (const std::string& line : split(footer, '\n')) {
    if (in_examples) {
      if (line.empty()) return;
      command.examples.push_back(line.substr(std::min<std::size_t>(line.size(), 2)));
    } else if (line == "Example:" || line == "Examples:") {
      in_examples = true;
    } else {
      command.notes += line + "\n";
    }
  }
}

Command read_command(const CLI::App& app, const std::string& above) {
  Command command;
  command.path = above.empty() ? app.get_name() : above + " " + app.get_name();
  command.summary = app.get_description();
  read_footer(app.get_footer(), command);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option == app.get_help_ptr()) continue;
    command.options.push_back(read_option(*option));
  }
  for (const CLI::App* inside : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!inside->get_group().empty())
      command.commands.push_back(read_command(*inside, command.path));
  }
  return command;
}

void append_commands(const Command& command, std::vector<const Command*>& out) {
  out.push_back(&command);
  for (const Command& inside : command.commands) append_commands(inside, out);
}

}  // namespace

Command read_command_tree(const CLI::App& app) {
  return read_command(app, "");
}

std::vector<const Command*> all_commands(const Command& root) {
  std::vector<const Command*> commands;
  append_commands(root, commands);
  return commands;
}

}  // namespace edgecase::cli
