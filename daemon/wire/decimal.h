// Decimal text to double, rounded correctly, at the speed of typical sensor values; and what a text
// is as a number, wherever it came from. The table of what is what: wire/NUMBERS.md.
#pragma once

#include <cstdint>
#include <optional>
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

// A decimal as it is written, exactly: for times, where a float64 would lose digits.
struct ExactDecimal {
  bool negative = false;
  std::string digits;  // without leading zeros
  int exponent = 0;    // value = digits * 10^exponent

  int whole_digits() const { return static_cast<int>(digits.size()) + exponent; }
};
// Takes what parse_decimal() takes, and all of `text`; nullopt: that is no such number, or one of
// more digits than any time has.
std::optional<ExactDecimal> read_exact_decimal(std::string_view text);
// Times 10^shift, cut to a whole number; nullopt: an int64 cannot hold it.
std::optional<std::int64_t> scaled(const ExactDecimal& decimal, int shift);

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
