// Decimal text to double, rounded correctly, at the speed of typical sensor values; and what a text
// is as a number, wherever it came from. The table of what is what: wire/NUMBERS.md.
#pragma once

#include <string>
#include <string_view>

namespace edgecase::wire {

enum class DecimalOutcome : unsigned char {
  Ok,
  NotANumber,  // no digits where a number should be; "nan" and "inf" too
  TooLarge,    // beyond the largest finite double
};

// Reads `[+-]digits[.digits][e[+-]digits]` (digits before or after the point may be missing, not
// both) from `position`, which is left behind the number. Too small a number is zero.
DecimalOutcome parse_decimal(const char*& position, const char* end, double& value);

// Without what is around it and is no part of it: white space, NULs at the end, a byte order mark.
std::string_view trimmed_text(std::string_view text);

// What a whole text is as a number, as firmware prints it.
enum class NumberText : unsigned char {
  Number,
  NoValue,   // how firmware says that there is none: nothing, "null", "nan", "-inf", "ovf"
  TooLarge,  // beyond the largest finite double
  Other,
};
// Trims the text and takes all that parse_decimal() takes; `value` is set for Number alone.
NumberText read_number(std::string_view text, double& value);

// One sentence about a text that is no number: what it looks like and what would be taken. Shows
// the beginning of the text, without control characters.
std::string number_problem(std::string_view text);

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace edgecase::wire
