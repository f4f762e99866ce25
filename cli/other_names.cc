#include "mended_line.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "wire/names.h"
#include "wire/selector.h"

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
namespace {

using OtherName = std::pair<std::string_view, std::string_view>;

// What the same thing is called elsewhere.
constexpr std::array kCommandAliases = {
    OtherName{"select", "query"},       OtherName{"show", "query"},
    OtherName{"read", "query"},         OtherName{"history", "query"},
    OtherName{"head", "query"},         OtherName{"find", "series"},
    OtherName{"ls", "series"},          OtherName{"list", "series"},
    OtherName{"sensors", "series"},     OtherName{"latest", "last"},
    OtherName{"current", "last"},       OtherName{"now", "last"},
    OtherName{"insert", "write"},       OtherName{"put", "write"},
    OtherName{"set", "write"},          OtherName{"add", "write"},
    OtherName{"pub", "write"},          OtherName{"publish", "write"},
    OtherName{"delete", "erase"},       OtherName{"del", "erase"},
    OtherName{"rm", "erase"},           OtherName{"remove", "erase"},
    OtherName{"drop", "erase"},         OtherName{"follow", "tail"},
    OtherName{"watch", "tail"},         OtherName{"sub", "tail"},
    OtherName{"subscribe", "tail"},     OtherName{"graph", "plot"},
    OtherName{"chart", "plot"},         OtherName{"draw", "plot"},
    OtherName{"dump", "export"},        OtherName{"load", "import"},
    OtherName{"info", "status"},        OtherName{"stats", "status"},
    OtherName{"health", "status"},      OtherName{"ping", "status"},
    OtherName{"start", "serve"},        OtherName{"run", "serve"},
    OtherName{"daemon", "serve"},       OtherName{"verify", "check"},
    OtherName{"fsck", "check"},         OtherName{"du", "where"},
    OtherName{"ttl", "retention"},      OtherName{"expire", "retention"},
    OtherName{"log", "audit"},          OtherName{"logs", "audit"},
    OtherName{"ns", "namespace"},       OtherName{"db", "namespace"},
    OtherName{"database", "namespace"}, OtherName{"auth", "token"},
    OtherName{"new", "create"},         OtherName{"add", "create"},
    OtherName{"make", "create"},        OtherName{"get", "show"},
    OtherName{"unset", "clear"},        OtherName{"try", "test"},
};
constexpr std::array kOptionAliases = {
    OtherName{"--start", "--from"},
    OtherName{"--begin", "--from"},
    OtherName{"--after", "--from"},
    OtherName{"--end", "--to"},
    OtherName{"--until", "--to"},
    OtherName{"--stop", "--to"},
    OtherName{"--before", "--to"},
    OtherName{"--last", "--since"},
    OtherName{"--ago", "--since"},
    OtherName{"--interval", "--every"},
    OtherName{"--window", "--every"},
    OtherName{"--step", "--every"},
    OtherName{"--bucket", "--every"},
    OtherName{"--group", "--every"},
    OtherName{"--aggregate", "--agg"},
    OtherName{"--aggregation", "--agg"},
    OtherName{"--function", "--agg"},
    OtherName{"--fn", "--agg"},
    OtherName{"--ns", "--namespace"},
    OtherName{"--db", "--namespace"},
    OtherName{"--database", "--namespace"},
    OtherName{"--all", "--all-namespaces"},
    OtherName{"--url", "--host"},
    OtherName{"--server", "--host"},
    OtherName{"--address", "--host"},
    OtherName{"--password", "--token"},
    OtherName{"--cacert", "--tls-ca"},
    OtherName{"--ca", "--tls-ca"},
    OtherName{"--count", "--limit"},
    OtherName{"--max", "--limit"},
    OtherName{"--head", "--limit"},
    OtherName{"--lines", "--limit"},
    OtherName{"--reverse", "--desc"},
    OtherName{"--descending", "--desc"},
    OtherName{"--newest", "--desc"},
    OtherName{"--force", "--yes"},
    OtherName{"-y", "--yes"},
    OtherName{"-f", "--format"},
    OtherName{"--timezone", "--tz"},
    OtherName{"--zone", "--tz"},
    OtherName{"--output", "-o"},
    OtherName{"--out", "-o"},
    OtherName{"--timestamp", "--time"},
    OtherName{"--at", "--time"},
    OtherName{"--value-type", "--type"},
    OtherName{"--keep", "--then"},
    OtherName{"--ttl", "--expires"},
    OtherName{"--dryrun", "--dry-run"},
};

std::string_view alias_of(std::string_view word, const auto& aliases) {
  const auto found = std::find_if(aliases.begin(), aliases.end(),
                                  [word](const OtherName& pair) { return pair.first == word; });
  return found == aliases.end() ? std::string_view() : found->second;
}

}  // namespace

UnknownOption unknown_option(const Command& root, const TypedWords& words) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    const std::string name(option_name(words[given.at]));
    if (given.option == nullptr && name != "--help" && name != "-h")
      return {name, nearest_option(*line.command, name)};
  }
  return {};
}

std::string nearest_option(const Command& command, std::string_view word) {
  std::vector<std::string_view> names;
  for (const CommandOption& option : command.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  names.emplace_back("--help");
  const auto is_known = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::string lowered = in_lower_case(word);
  // "-format", "--n": a dash too few or too many.
  std::string_view bare = lowered;
  while (bare.starts_with('-')) bare.remove_prefix(1);
  if (bare.empty()) return {};
  for (const char* dashes : {"--", "-"}) {
    if (const std::string name = dashes + std::string(bare); is_known(name)) return name;
  }
  for (const std::string& each : {lowered, "--" + std::string(bare)}) {
    if (const auto alias = alias_of(each, kOptionAliases); is_known(alias))
      return std::string(alias);
  }
  // Dashes are no letters that could be mistaken.
  std::vector<std::string_view> long_names;
  for (const std::string_view name : names) {
    if (name.starts_with("--")) long_names.push_back(name.substr(2));
  }
  const std::string_view near = wire::nearest_word(bare, long_names);
  return near.empty() ? std::string() : "--" + std::string(near);
}

std::string nearest_command(const Command& command, std::string_view word) {
  std::vector<std::string> names;
  for (const Command& inside : command.commands) names.push_back(inside.name());
  const std::string lowered = in_lower_case(word);
  const auto is_known = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_known(lowered)) return lowered;
  for (const auto& [typed, meant] : kCommandAliases) {
    if (typed == lowered && is_known(meant)) return std::string(meant);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return std::string(wire::nearest_word(lowered, known));
}

// "kitchen,boiler/temp" and "{kitchen,boiler}/temp" as selectors; one: it is a list of nothing.
TypedWords listed(const std::string& text) {
  std::size_t begin = 0, end = text.size();
  const std::size_t brace = text.find('{');
  if (brace != std::string::npos) {
    begin = brace + 1;
    end = text.find('}', brace);
    // A name with tags is none: "cpu.idle{cpu=cpu0,host=pi}".
    if (end == std::string::npos || text.find('=') != std::string::npos) return {text};
  }
  const std::string before = text.substr(0, brace == std::string::npos ? 0 : brace);
  const std::string behind = brace == std::string::npos ? "" : text.substr(end + 1);
  TypedWords all;
  for (std::size_t at = begin; at <= end; ++at) {
    const std::size_t comma = std::min(text.find(',', at), end);
    all.push_back(before + text.substr(at, comma - at) + behind);
    if (!wire::parse_selector(all.back()).ok()) return {text};
    at = comma;
  }
  return all;
}

// Wildcards of MQTT, SQL and regular expressions as those of selectors.
std::string with_own_wildcards(const std::string& text) {
  std::string meant;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::string name = text.substr(at, end - at);
    const bool is_any = name == "+" || name == "#" || name == "%" || name == ".*" || name == ".+";
    meant += (is_any ? "*" : name) + (end < text.size() ? "/" : "");
    at = end + 1;
  }
  return meant == "*" ? "*/*" : meant;
}

// "/kitchen/temp/", "sensors/kitchen/temp", "/temp": as a device and its sensor.
std::string selector_meant(std::string_view text) {
  const bool is_sensor = text.starts_with('/') && text.find('/', 1) == std::string_view::npos;
  if (is_sensor) {
    const std::string of_any = "*" + std::string(text);
    return wire::parse_selector(of_any).ok() ? of_any : std::string();
  }
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  std::string joined;
  for (const char c : text) {
    if (c != '/' || !joined.ends_with('/')) joined += c;
  }
  // Topics have more levels: their last two.
  while (std::count(joined.begin(), joined.end(), '/') > 1) joined.erase(0, joined.find('/') + 1);
  return wire::parse_selector(joined).ok() ? joined : std::string();
}

// "kitchen.temp", "kitchen:temp", "kitchen-temp"
std::string series_meant(std::string_view text) {
  const std::size_t mark = text.find_first_of(".:#,");
  if (mark == 0 || mark == std::string_view::npos || mark + 1 == text.size()) return {};
  if (is_number(text)) return {};
  return std::string(text.substr(0, mark)) + "/" + std::string(text.substr(mark + 1));
}

namespace {

// "-o", "--output", "--"; no number, and not "-", which stands for stdin or stdout.
bool has_dash_of_option(std::string_view word) {
  if (word.size() < 2 || word.front() != '-') return false;
  const char c = word[1];
  return c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

ForgottenValue forgotten_value(const Command& root, const TypedWords& words) {
  const TypedLine line(root, words);
  for (const TypedLine::Given& given : line.options) {
    if (!given.value || !has_dash_of_option(words[*given.value])) continue;
    const std::string& name = words[given.at];
    const std::string& word = words[*given.value];
    const std::vector<std::string>& names = given.option->names;
    const auto long_name = std::find_if(
        names.begin(), names.end(), [](const std::string& each) { return each.starts_with("--"); });
    const std::string joined = (long_name == names.end() ? name : *long_name + "=") + word;
    ForgottenValue forgotten;
    forgotten.problem = name + " needs a value, and " + for_shell(word) +
                        " looks like an option; if it is the value, write " + for_shell(joined);
    // An option that is not of this command was put before the value: "--png -o p.png".
    if (line.takes(word) || !nearest_option(*line.command, word).empty()) return forgotten;
    forgotten.meant = words;
    const auto place = forgotten.meant.begin() + static_cast<std::ptrdiff_t>(*given.value);
    const bool has_value = *given.value + 1 < words.size() && !is_option(words[*given.value + 1]);
    if (!has_value) forgotten.meant[given.at] = joined;
    forgotten.meant.erase(place);
    return forgotten;
  }
  return {};
}

}  // namespace edgecase::cli
