#include "other_names.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "wire/suggest.h"

namespace edgecase::cli {
namespace {

using OtherName = std::pair<std::string_view, std::string_view>;

// What the same thing is called elsewhere.
constexpr std::array kCommandAliases = {
    OtherName{"select", "query"},     OtherName{"show", "query"},
    OtherName{"read", "query"},       OtherName{"history", "query"},
    OtherName{"find", "series"},      OtherName{"ls", "series"},
    OtherName{"list", "series"},      OtherName{"sensors", "series"},
    OtherName{"latest", "last"},      OtherName{"current", "last"},
    OtherName{"now", "last"},         OtherName{"insert", "write"},
    OtherName{"put", "write"},        OtherName{"set", "write"},
    OtherName{"add", "write"},        OtherName{"pub", "write"},
    OtherName{"publish", "write"},    OtherName{"delete", "erase"},
    OtherName{"del", "erase"},        OtherName{"rm", "erase"},
    OtherName{"remove", "erase"},     OtherName{"drop", "erase"},
    OtherName{"follow", "tail"},      OtherName{"watch", "tail"},
    OtherName{"sub", "tail"},         OtherName{"subscribe", "tail"},
    OtherName{"graph", "plot"},       OtherName{"chart", "plot"},
    OtherName{"draw", "plot"},        OtherName{"dump", "export"},
    OtherName{"load", "import"},      OtherName{"info", "status"},
    OtherName{"stats", "status"},     OtherName{"health", "status"},
    OtherName{"ping", "status"},      OtherName{"start", "serve"},
    OtherName{"run", "serve"},        OtherName{"daemon", "serve"},
    OtherName{"verify", "check"},     OtherName{"fsck", "check"},
    OtherName{"du", "where"},         OtherName{"ttl", "retention"},
    OtherName{"expire", "retention"}, OtherName{"log", "audit"},
    OtherName{"logs", "audit"},       OtherName{"ns", "namespace"},
    OtherName{"db", "namespace"},     OtherName{"database", "namespace"},
    OtherName{"auth", "token"},       OtherName{"new", "create"},
    OtherName{"add", "create"},       OtherName{"make", "create"},
    OtherName{"get", "show"},         OtherName{"unset", "clear"},
    OtherName{"try", "test"},
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

}  // namespace edgecase::cli
