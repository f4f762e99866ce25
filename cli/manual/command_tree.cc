#include "manual/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
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

namespace {

constexpr std::string_view kHelp = "--help";
constexpr std::string_view kHelpText = "Explain the command";
constexpr std::string_view kServe = "edgecase serve";  // what `edgecased` is

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

// 'text' for any of the shells: none of them sees anything inside but the quote itself.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// For bash and zsh: each a word, whatever it is.
std::string quoted_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += ' ' + in_quotes(word);
  return out;
}

// fish sees the backslash inside quotes too.
std::string fish_quoted(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled += c == '\\' ? "\\\\" : std::string(1, c);
  return in_quotes(doubled);
}

std::string first_line(std::string_view help) {
  return std::string(help.substr(0, help.find('\n')));
}

// Patterns 'command:option' of every option that takes a value.
std::vector<std::string> options_with_values(const Command& root) {
  std::vector<std::string> patterns;
  for (const Command* command : all_commands(root)) {
    for (const CommandOption& option : command->options) {
      if (option.positional || option.value.empty()) continue;
      for (const std::string& name : option.names)
        patterns.push_back(in_quotes(command->path + ":" + name));
    }
  }
  return patterns;
}

// fish reads what is behind -a as words once more.
std::string fish_words(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    if (!list.empty()) list += ' ';
    for (const char c : word) {
      const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                            std::string_view("-_./:,").find(c) != std::string_view::npos;
      if (!is_plain) list += '\\';
      list += c;
    }
  }
  return fish_quoted(list);
}

// For bash and zsh: the cases of "$place:$before", what follows an option that takes a value.
void append_value_cases(const Command& root, const std::string& words, const std::string& files,
                        const std::string& nothing, std::string& out) {
  for (const Command* command : all_commands(root)) {
    for (const CommandOption& option : command->options) {
      if (option.positional || option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names)
        patterns.push_back(in_quotes(command->path + ":" + name));
      std::string offer = option.is_path() ? files : nothing;
      if (!option.choices.empty()) offer = words + quoted_words(option.choices);
      out += "    " + joined(patterns, " | ") + ") " + offer + "; return ;;\n";
    }
  }
}

// For bash and zsh: sets `place` to the command that the words before the cursor name. What
// follows an option that takes a value is no command.
std::string walk(const Command& root, std::string_view program, std::string_view loop,
                 std::string_view word) {
  std::string out = "  local place=edgecase skip= i\n  case \"" + std::string(program) +
                    "\" in *edgecased) place=" + in_quotes(kServe) + " ;; esac\n  for " +
                    std::string(loop) +
                    "; do\n"
                    "    if [ -n \"$skip\" ]; then skip=; continue; fi\n"
                    "    case \"$place:" +
                    std::string(word) + "\" in\n";
  for (const Command* command : all_commands(root)) {
    for (const Command& inside : command->commands) {
      out += "      " + in_quotes(command->path + ":" + inside.name()) +
             ") place=" + in_quotes(inside.path) + " ;;\n";
    }
  }
  return out + "      " + joined(options_with_values(root), " | ") +
         ") skip=yes ;;\n    esac\n  done\n";
}

bool takes_paths(const Command& command) {
  for (const CommandOption& option : command.options) {
    if (option.positional && option.is_path()) return true;
  }
  return false;
}

std::vector<std::string> positional_choices(const Command& command) {
  for (const CommandOption& option : command.options) {
    if (option.positional && !option.choices.empty()) return option.choices;
  }
  return {};
}

// The words behind `edgecase completion` that print what may stand there: names of the running
// daemon. Empty: none may.
std::string names_of_daemon(const Command& command) {
  for (const CommandOption& option : command.options) {
    if (!option.positional) continue;
    const std::string& name = option.names.front();
    if (name == "selector" || name == "series") return "names";
    if (name == "device") return "names --devices";
  }
  return {};
}

std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string bash_completion(const Command& root) {
  std::string out =
      "# bash completion of edgecase; made by `edgecase completion bash`.\n"
      "_edgecase_words() {\n"
      "  local each quoted\n"
      "  for each; do\n"
      "    printf -v quoted %q \"$each\"\n"
      "    if [[ $each == \"$word\"* ]]; then COMPREPLY+=(\"$quoted\"); fi\n"
      "  done\n"
      "}\n"
      "_edgecase_files() {\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "}\n"
      "# Names of the running daemon: a device is not the end of a selector.\n"
      "_edgecase_names() {\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  mapfile -t COMPREPLY < <(edgecase completion \"$@\" -- \"$word\" 2>/dev/null)\n"
      "  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]]; then\n"
      "    compopt -o nospace 2>/dev/null\n"
      "  fi\n"
      "}\n"
      "_edgecase() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n";
  out += walk(root, "${COMP_WORDS[0]}", "((i = 1; i < COMP_CWORD; ++i))", "${COMP_WORDS[i]}");
  out += "  case \"$place:$before\" in\n";
  append_value_cases(root, "_edgecase_words", "_edgecase_files", ":", out);
  out += "  esac\n  case \"$place:$word\" in\n";
  for (const Command* command : all_commands(root)) {
    std::string options(kHelp);
    for (const CommandOption& option : command->options) {
      if (!option.positional) options += " " + joined(option.names, " ");
    }
    std::vector<std::string> words = positional_choices(*command);
    for (const Command& inside : command->commands) words.push_back(inside.name());
    out += "    " + in_quotes(command->path + ":-") + "*) _edgecase_words " + options + " ;;\n";
    out += "    " + in_quotes(command->path + ":") + "*) ";
    const std::string names = names_of_daemon(*command);
    out += takes_paths(*command) ? "_edgecase_files"
           : !names.empty()      ? "_edgecase_names " + names
                                 : "_edgecase_words" + quoted_words(words);
    out += " ;;\n";
  }
  out +=
      "  esac\n"
      "}\n"
      "complete -F _edgecase edgecase edgecased\n";
  return out;
}

std::string zsh_completion(const Command& root) {
  std::string out =
      "#compdef edgecase edgecased\n"
      "# zsh completion of edgecase; made by `edgecase completion zsh`.\n"
      "_edgecase() {\n"
      "  local before=${words[CURRENT-1]}\n"
      "  local -a offered\n";
  out += walk(root, "${words[1]}", "((i = 2; i < CURRENT; ++i))", "${words[i]}");
  out += "  case \"$place:$before\" in\n";
  append_value_cases(root, "compadd --", "_files", "_message value", out);
  out += "  esac\n  case \"$place:${words[CURRENT]}\" in\n";
  for (const Command* command : all_commands(root)) {
    out += "    " + in_quotes(command->path + ":-") + "*) offered=(\n      " +
           in_quotes(std::string(kHelp) + ":" + std::string(kHelpText)) + "\n";
    for (const CommandOption& option : command->options) {
      if (option.positional) continue;
      for (const std::string& name : option.names) {
        out += "      " + in_quotes(name + ":" + zsh_escaped(first_line(option.help))) + "\n";
      }
    }
    out += "      ); _describe -o option offered ;;\n";
    out += "    " + in_quotes(command->path + ":") + "*) ";
    if (takes_paths(*command)) {
      out += "_files ;;\n";
      continue;
    }
    if (const std::string names = names_of_daemon(*command); !names.empty()) {
      out += "compadd -- ${(f)\"$(edgecase completion " + names +
             " -- \"${words[CURRENT]}\" 2>/dev/null)\"} ;;\n";
      continue;
    }
    out += "offered=(\n";
    for (const std::string& choice : positional_choices(*command)) {
      out += "      " + in_quotes(zsh_escaped(choice)) + "\n";
    }
    for (const Command& inside : command->commands) {
      out += "      " + in_quotes(inside.name() + ":" + zsh_escaped(inside.summary)) + "\n";
    }
    out += "      ); _describe command offered ;;\n";
  }
  // As a file of $fpath it is the function's body; sourced, it has to be made known.
  out +=
      "  esac\n"
      "}\n"
      "if [[ $funcstack[1] == _edgecase ]]; then _edgecase \"$@\"; "
      "else compdef _edgecase edgecase edgecased; fi\n";
  return out;
}

std::string fish_completion(const Command& root) {
  std::string out =
      "# fish completion of edgecase; made by `edgecase completion fish`.\n"
      "function __edgecase_place\n"
      "  set -l place edgecase\n"
      "  set -l skip\n"
      "  set -l words (commandline -opc)\n"
      "  for word in $words[2..-1]\n"
      "    if test -n \"$skip\"\n"
      "      set skip\n"
      "      continue\n"
      "    end\n"
      "    switch \"$place:$word\"\n";
  for (const Command* command : all_commands(root)) {
    for (const Command& inside : command->commands) {
      out += "      case " + in_quotes(command->path + ":" + inside.name()) +
             "\n        set place " + in_quotes(inside.path) + "\n";
    }
  }
  out += "      case";
  for (const std::string& option : options_with_values(root)) out += " " + option;
  out +=
      "\n        set skip yes\n"
      "    end\n"
      "  end\n"
      "  echo $place\n"
      "end\n"
      "function __edgecase_at\n"
      "  test (__edgecase_place) = \"$argv\"\n"
      "end\n"
      "function __edgecase_names\n"
      "  string match -q -- '-*' (commandline -ct); and return\n"
      "  command -q edgecase; or return\n"
      "  command edgecase completion $argv -- (commandline -ct) 2>/dev/null\n"
      "end\n"
      "complete -c edgecase -f\n"
      "complete -c edgecased -w 'edgecase serve'\n";
  for (const Command* command : all_commands(root)) {
    const std::string start =
        "complete -c edgecase -n " + in_quotes("__edgecase_at " + command->path);
    out += start + " -l help -d " + in_quotes(kHelpText) + "\n";
    for (const Command& inside : command->commands) {
      out +=
          start + " -a " + in_quotes(inside.name()) + " -d " + fish_quoted(inside.summary) + "\n";
    }
    for (const CommandOption& option : command->options) {
      const std::string choices = option.choices.empty() ? "" : " -a " + fish_words(option.choices);
      if (option.positional) {
        if (option.is_path()) out += start + " -F\n";
        if (!choices.empty()) out += start + choices + "\n";
        const std::string names = names_of_daemon(*command);
        if (!names.empty() && &option == &command->options.front())
          out += start + " -a " + in_quotes("(__edgecase_names " + names + ")") + "\n";
        continue;
      }
      out += start;
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.empty()) out += option.is_path() ? " -r -F" : " -x";
      out += choices + " -d " + fish_quoted(first_line(option.help)) + "\n";
    }
  }
  return out;
}

}  // namespace edgecase::cli
