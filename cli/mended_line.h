// The mended line: a command line that was refused, or that found nothing, with the mistakes mended
// that people make most, ready to be copied.
//
// The application asks for it once a command is done. Commands that learn from the daemon what a
// name should have been say so with suggest_name() before they end. Everything else is decided by
// the words and the declared commands alone. One thread.
#pragma once

#include <string>
#include <string_view>

#include "other_names.h"

namespace edgecase::cli {

// A line that was refused as wrong usage, mended; empty: nothing is known that would be better.
TypedWords mended_usage(const Command& root, TypedWords words);
// A line whose names were not found, mended: what suggest_name() said, else whether a shell made
// the names of files out of a pattern. `exists` tells whether a path is there.
TypedWords mended_names(const Command& root, TypedWords words, bool (*exists)(const std::string&));

// The same line where the parser would take parts of it for something else: dashes and quotes as
// documents have them, a value that a blank has cut in two.
TypedWords mended_blanks(const Command& root, TypedWords words);

// A command says that the names it was given name nothing, and what one was probably meant to be.
void note_nothing_found();
void suggest_name(std::string typed, std::string meant);
bool is_nothing_found();
// Forgets both, for the next line.
void forget_suggestions();

// A selector in SQL, as who comes from InfluxDB types it: over HTTP it is understood.
bool is_sql(std::string_view word);
// How to ask that; empty: no word is SQL.
std::string sql_line(const TypedWords& words);

}  // namespace edgecase::cli
