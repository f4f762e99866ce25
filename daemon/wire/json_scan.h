// Looks at JSON text before it is parsed.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Whether `line` is a JSON object from its first to its last character, as far as braces tell.
bool looks_like_whole_object(std::string_view line);

// InvalidArgument: a number has more than kJsonNumberMaxBytes (reading_json.h). The library keeps
// one several times over before it judges it. Only a large document can hold one that matters.
Status check_number_lengths(std::string_view document);

// With quotes and escapes, valid UTF-8 kept as it is; and what stands between the quotes.
void append_json_string(std::string_view text, std::string& out);
void append_json_escaped(std::string_view text, std::string& out);

}  // namespace edgecase::wire
