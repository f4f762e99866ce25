// The VALUE of `edgecase write`: what kind of value the text is, and the request that stores it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "edgecase/status.h"
#include "wire/reading.h"

namespace edgecase::cli {

// How a table writes numbers and bools; `write` takes the plain form.
struct ValueSpelling {
  char decimal_mark = '.';
  bool any_case_of_bools = false;  // TRUE and True too
};

// "float", "int", "bool", "text", "bytes"; empty guesses: a number is a float, true and false are
// bools, everything else is text. What is a number: wire/NUMBERS.md; an int may be written `5.0`.
// nullopt: it says that there is no value (nothing, `nan`, `null`), which is a text only where the
// type says so. The value borrows `text`. InvalidArgument says what does not fit; it is that too
// where a number was and a text would be stored: `1e400`, `1,5`.
Result<std::optional<wire::Value>> parse_value(std::string_view text, std::string_view type,
                                               const ValueSpelling& spelling = {});

// By the name's ending: image/jpeg for x.jpg; application/octet-stream when it tells nothing.
std::string_view content_type_of_file(std::string_view path);

// {"namespace","device","sensor","time"?,"value","type"}: `value` is not bytes. `time` as given.
std::string reading_json(std::string_view namespace_name, std::string_view device,
                         std::string_view sensor, std::string_view time, const wire::Value& value);

}  // namespace edgecase::cli
