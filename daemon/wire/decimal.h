// Decimal text to double, rounded correctly, at the speed of typical sensor values.
#pragma once

namespace edgecase::wire {

enum class DecimalOutcome : unsigned char {
  Ok,
  NotANumber,  // no digits where a number should be; "nan" and "inf" too
  TooLarge,    // beyond the largest finite double
};

// Reads `[+-]digits[.digits][e[+-]digits]` (digits before or after the point may be missing, not
// both) from `position`, which is left behind the number. Too small a number is zero.
DecimalOutcome parse_decimal(const char*& position, const char* end, double& value);

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace edgecase::wire
