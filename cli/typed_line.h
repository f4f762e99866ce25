// The typed line: the words of a command line, taken apart by what is declared, before the parser
// reads them and without its strictness. The application puts words in order with it;
// mended_line.cc looks for mistakes in it. Values without state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manual/command_tree.h"

namespace edgecase::cli {

using TypedWords = std::vector<std::string>;

std::string in_lower_case(std::string_view text);
bool is_option(std::string_view word);
// "--from" of "--from=today".
std::string_view option_name(std::string_view word);

// Positions of words in the line it is made of, which outlives it unchanged.
struct TypedLine {
  const Command* command;              // the deepest one that the words name
  std::size_t begin = 0;               // of the words behind the command
  std::vector<std::size_t> positions;  // of words that are neither an option nor its value
  struct Given {
    const CommandOption* option;  // null: unknown
    std::size_t at;
    std::optional<std::size_t> value;  // where that is a word of its own
  };
  std::vector<Given> options;

  TypedLine(const Command& root, const TypedWords& words);

  // An option was given; the command has such an option; it takes such words without a name.
  bool has(std::string_view name) const;
  bool takes(std::string_view name) const;
  bool takes_position(std::string_view name) const;
  bool takes_selectors() const { return takes_position("selector"); }
};

// The order that the parser wants: options before a command stand behind it. A selector in
// brackets, which the parser would take for a list, gets an escape, which selectors have.
TypedWords words_in_order(const Command& root, TypedWords words);

// "edgecase query 'kitchen/*' --since 1h": for a shell. The value of --token is left out of it.
std::string shell_line(const TypedWords& words);
// One word of it.
std::string for_shell(std::string_view word);

}  // namespace edgecase::cli
