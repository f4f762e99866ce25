#include "typed_line.h"

#include <algorithm>
#include <utility>

namespace edgecase::cli {

std::string in_lower_case(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lowered;
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && (word[1] < '0' || word[1] > '9') &&
         word[1] != '.';
}

std::string_view option_name(std::string_view word) {
  return word.substr(0, word.starts_with("--") ? word.find('=') : word.size());
}

namespace {

const CommandOption* find_option(const Command& command, std::string_view word) {
  for (const CommandOption& option : command.options) {
    if (option.positional) continue;
    for (const std::string& name : option.names) {
      if (name == option_name(word)) return &option;
      // "-nNAME"
      if (!word.starts_with("--") && name.size() == 2 && word.starts_with(name)) return &option;
    }
  }
  return nullptr;
}

// Whether `next`, the word behind `word`, is its value.
bool takes_next(const CommandOption& option, std::string_view word, std::string_view next) {
  if (option.value.empty() || (option.optional && is_option(next))) return false;
  return word.starts_with("--") ? word.find('=') == std::string_view::npos : word.size() == 2;
}

const Command* find_command(const Command& command, std::string_view name) {
  for (const Command& inside : command.commands) {
    if (inside.name() == name) return &inside;
  }
  return nullptr;
}

bool is_plain(std::string_view word) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  return !word.empty() && word.find_first_not_of(kSafe) == std::string_view::npos;
}

}  // namespace

TypedLine::TypedLine(const Command& root, const TypedWords& words) : command(&root) {
  const Command* inside = nullptr;
  while (begin < words.size() && (inside = find_command(*command, words[begin])) != nullptr) {
    command = inside;
    ++begin;
  }
  bool only_positions = false;
  for (std::size_t i = begin; i < words.size(); ++i) {
    if (only_positions || !is_option(words[i])) {
      positions.push_back(i);
      continue;
    }
    if (words[i] == "--") {
      only_positions = true;
      continue;
    }
    const CommandOption* const option = find_option(*command, words[i]);
    Given given{option, i, std::nullopt};
    if (option != nullptr && i + 1 < words.size() && takes_next(*option, words[i], words[i + 1]))
      given.value = ++i;
    options.push_back(given);
  }
}

bool TypedLine::has(std::string_view name) const {
  return std::any_of(options.begin(), options.end(), [name](const Given& given) {
    if (given.option == nullptr) return false;
    const auto& names = given.option->names;
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

bool TypedLine::takes(std::string_view name) const {
  return find_option(*command, name) != nullptr;
}

bool TypedLine::takes_position(std::string_view name) const {
  return std::any_of(command->options.begin(), command->options.end(),
                     [name](const CommandOption& option) {
                       return option.positional && option.names.front() == name;
                     });
}

TypedWords words_in_order(const Command& root, TypedWords words) {
  // The first word that is a command and no value of an option that some command has.
  const Command* command = &root;
  std::size_t begin = 0;
  while (!command->commands.empty()) {
    const auto option_of_any = [command](std::string_view word) -> const CommandOption* {
      for (const Command* each : all_commands(*command)) {
        if (const CommandOption* option = find_option(*each, word)) return option;
      }
      return nullptr;
    };
    std::size_t at = begin;
    for (; at < words.size() && is_option(words[at]); ++at) {
      const CommandOption* const option = option_of_any(words[at]);
      const std::string next = at + 1 < words.size() ? words[at + 1] : std::string();
      if (option != nullptr && takes_next(*option, words[at], next)) ++at;
    }
    const Command* const inside = at < words.size() ? find_command(*command, words[at]) : nullptr;
    if (inside == nullptr) break;
    const auto place = words.begin() + static_cast<std::ptrdiff_t>(begin);
    std::rotate(place, words.begin() + static_cast<std::ptrdiff_t>(at),
                words.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    command = inside;
    ++begin;
  }
  const TypedLine line(root, words);
  if (!line.takes_selectors()) return words;
  for (const std::size_t at : line.positions) {
    if (words[at].starts_with('[') && words[at].ends_with(']')) words[at].insert(0, "\\");
  }
  return words;
}

std::string shell_line(const TypedWords& words) {
  std::string text = "edgecase";
  bool is_secret = false;
  for (const std::string& word : words) {
    text += ' ';
    if (std::exchange(is_secret, word == "--token")) {
      text += "TOKEN";
    } else if (word.starts_with("--token=")) {
      text += "--token=TOKEN";
    } else {
      text += for_shell(word);
    }
  }
  return text;
}

std::string for_shell(std::string_view word) {
  if (is_plain(word)) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace edgecase::cli
