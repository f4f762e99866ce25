// Checks names of namespaces, devices and sensors: UTF-8, no control characters, no `/`; of a
// device 1 to 256 bytes, of a sensor 1 to 1,024, of anything else 1 to 128.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

bool is_valid_utf8(std::string_view text);
// How many bytes of it are, from its begin on.
std::size_t valid_utf8_bytes(std::string_view text);
// InvalidArgument says what is wrong with it; `what` is "device", "sensor", "namespace", …
Status check_name(std::string_view what, std::string_view name);
std::size_t name_max_bytes(std::string_view what);

// What is derived from something else becomes a name: `/` and control characters are `:`; what is
// longer than `bytes_max` is cut between two characters and ends in `~` and 16 hexadecimal digits,
// a hash of all of it, the same for good. `text` is UTF-8; from `begin` on it may be changed.
void make_name(std::string& text, std::size_t bytes_max, std::size_t begin = 0);
// Whether that changes nothing of `text` but its length. The same of two texts is so of them
// joined.
bool is_made_name(std::string_view text);

// "did you mean": the known word that a mistyped one was probably meant to be.

// Empty when none is near: at most two letters and half of `word` differ, or `word` is the
// beginning of one.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace edgecase::wire
