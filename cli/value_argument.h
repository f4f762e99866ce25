// The VALUE of `edgecase write`: what kind of value the text is, and the request that stores it.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/result.h"
#include "wire/reading.h"

namespace edgecase::cli {

// "float", "int", "bool", "text", "bytes"; empty guesses: a number is a float, true and false are
// bools, everything else is text. The value borrows `text`. InvalidArgument says what does not fit.
Result<wire::Value> parse_value(std::string_view text, std::string_view type);

// By the name's ending: image/jpeg for x.jpg; application/octet-stream when it tells nothing.
std::string_view content_type_of_file(std::string_view path);

// {"namespace","device","sensor","time"?,"value","type"}: `value` is not bytes. `time` as given.
std::string reading_json(std::string_view namespace_name, std::string_view device,
                         std::string_view sensor, std::string_view time, const wire::Value& value);

}  // namespace edgecase::cli
