// The mended line: a command line that was refused, or that found nothing, with the mistakes mended
// that people make most, ready to be copied (mended_line.cc); and the other names of commands and
// options that it looks through (other_names.cc); and of times (times_meant.cc).
//
// The application asks for it once a command is done. Commands that learn from the daemon what a
// name should have been say so with suggest_name() before they end. Everything else is decided by
// the words, the declared commands and, where a shell made names of a pattern, by which files
// exist. One thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manual/command_tree.h"

namespace edgecase::cli {

// The typed line: the words of a command line, taken apart by what is declared, before the parser
// reads them and without its strictness. The application puts words in order with it;
// mended_line.cc looks for mistakes in it. Values without state.

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

// Other names of commands and options: those that are near a mistyped one, and those that the same
// thing has in other programs (other_names.cc). Values without state.

// The first word that looks like an option and is none of the command's, and the one that it was
// meant to be. Empty: all are; none is near.
struct UnknownOption {
  std::string name, near;
};
UnknownOption unknown_option(const Command& root, const TypedWords& words);
// The option that `word` was meant to be among those of the command, as "--since"; empty: none.
std::string nearest_option(const Command& command, std::string_view word);
// The command inside `command` that `word` was meant to be; empty: none.
std::string nearest_command(const Command& command, std::string_view word);

// Selectors that a text was meant to be (other_names.cc); empty, or the text: none.
TypedWords listed(const std::string& text);
std::string with_own_wildcards(const std::string& text);
std::string selector_meant(std::string_view text);
std::string series_meant(std::string_view text);

// The time or duration that a text was meant to be which is none: as people write dates, clocks and
// units (times_meant.cc). mended_line.cc offers it. Values without state.

bool all_digits(std::string_view text);
bool is_number(std::string_view text);  // with either decimal mark
// "5m" of "5 min", "2h" of "2hours", "1h" of "-1h" and "1h ago", "90s" of "90"; empty: nothing that
// can be told.
std::string duration_meant(std::string_view given);
// "2026-11-20" of "20.11.2026", "11/20/2026", "2026/11/20"; empty: none, or it could be two.
std::string date_meant(std::string_view text);
// "09:30" of "9:30"; empty: no clock shows it.
std::string clock_meant(std::string_view text);
// What parse_time_ns() takes; empty: nothing, or it takes `text`. `is_local` is set where it is a
// local clock's, which has to be said.
std::string time_meant(const std::string& text, bool& is_local);

// What options' values were meant to be (mended_values.cc): times, choices, counts, zones,
// addresses. mended_line.cc offers them. Values without state.

void mend_values(const Command& root, TypedWords& words);
// "--port 8650", which belongs behind the host, and addresses of other schemes.
void mend_host(const Command& root, TypedWords& words);
// A value that a blank has cut in two: "--since 5 min", "--from 2026-11-20 14:00", "1h ago".
void join_cut_values(const Command& root, TypedWords& words);
void mend_times(const Command& root, TypedWords& words);
// A line whose daemon did not answer: --host with the port that a daemon has; empty: it had one.
TypedWords mended_address(const Command& root, TypedWords words);

// An option whose value was forgotten, so that the next option stands in its place. The parser
// would take that for the value: `--png -o p.png` would write a file called "-o". The application
// refuses such a line before anything is done. Numbers, and "-" for stdin and stdout, are values;
// so is what stands behind a "=", as in `--png=-o`. Decided by words and declared commands alone;
// one thread.
struct ForgottenValue {
  std::string problem;  // empty: there is none
  TypedWords meant;     // empty: nothing is known that would be better
};
ForgottenValue forgotten_value(const Command& root, const TypedWords& words);

// A line that was refused as wrong usage, mended; empty: nothing is known that would be better.
TypedWords mended_usage(const Command& root, TypedWords words);
// A line whose names were not found, mended: patterns as others write them, then those that a shell
// made files of, then what suggest_name() said. `exists` tells whether a path is there.
TypedWords mended_names(const Command& root, TypedWords words, bool (*exists)(const std::string&));

// The same line where the parser would take parts of it for something else: dashes and quotes as
// documents have them, a value that a blank has cut in two.
TypedWords mended_blanks(const Command& root, TypedWords words);

// A command says that the names it was given name nothing, and what one was probably meant to be.
void note_nothing_found();
void suggest_name(std::string typed, std::string meant);
bool is_nothing_found();
// A command says what the line lacks that is refused: "--time-format unix".
void suggest_words(TypedWords words);
// Forgets what commands said, for the next line.
void forget_suggestions();

// A selector in SQL, as who comes from InfluxDB types it: over HTTP it is understood.
bool is_sql(std::string_view word);
// How to ask that; empty: no word is SQL.
std::string sql_line(const TypedWords& words);

}  // namespace edgecase::cli
