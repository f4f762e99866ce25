// Decimal text to double, rounded correctly, at the speed of typical sensor values; and what a text
// is as a number, wherever it came from. The table of what is what: wire/NUMBERS.md.
#pragma once

#include <cstdint>
#include <limits>
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

// Text of numbers and times as all formats print them; and printers of many of them, which remember
// what neighbours share. Functions: any thread. A printer: one thread.

// The shortest decimal text that reads back as the same double: 21.5, 1e+300, never "nan" or "inf".
// Negative zero is "-0.0", which JSON readers do not take for an integer.
void append_double(double value, std::string& out);
// "2026-11-20T14:00:00.000000000Z", all of int64 nanoseconds.
void append_time(std::int64_t time_ns, std::string& out);

// digits / 10^places.
struct ShortDecimal {
  std::uint64_t digits = 0;
  unsigned places = 0;
};

// Writes what append_double() appends. Most columns are decimals of a few places: it tries as many
// as the numbers before had, which takes a division, before it looks for the shortest text.
class DoublePrinter {
 public:
  static constexpr std::size_t kBytesMax = 32;
  // Returns the end of the text; there is room for kBytesMax.
  char* write(double value, char* out);
  // The same where that is a decimal from 0.001 on that has no exponent, and few digits before the
  // point; else null, or where it is not sure.
  char* write_decimal(double value, char* out);

 private:
  static constexpr unsigned kPlacesMax = 6;
  static constexpr unsigned kPassOver = 32;

  bool find_few_places(double size, ShortDecimal& decimal);

  unsigned places_ = 1;
  unsigned pass_over_ = 0;  // so many are not tried: one was no such decimal
};

// Writes what append_time() appends. The date is worked out once a day.
class TimePrinter {
 public:
  static constexpr std::size_t kBytes = 30;
  void write(std::int64_t time_ns, char* out);

 private:
  std::int64_t day_ = std::numeric_limits<std::int64_t>::min();
  char date_[11] = {};  // "2026-11-20T"
};

// Returns the end of the text; there is room for 20 bytes.
char* write_int(std::int64_t number, char* out);

}  // namespace edgecase::wire
