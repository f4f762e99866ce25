// Text of numbers and times as all formats print them; and printers of many of them, which remember
// what neighbours share. Functions: any thread. A printer: one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace edgecase::wire {

// The shortest decimal text that reads back as the same double: 21.5, 1e+300, never "nan" or "inf".
// Negative zero is "-0.0", which JSON readers do not take for an integer.
void append_double(double value, std::string& out);
// "2026-11-20T14:00:00.000000000Z", all of int64 nanoseconds.
void append_time(std::int64_t time_ns, std::string& out);

// Writes what append_double() appends. Most columns are decimals of a few places: it tries as many
// as the numbers before had, which takes a division, before it looks for the shortest text.
class DoublePrinter {
 public:
  static constexpr std::size_t kBytesMax = 32;
  // Returns the end of the text; there is room for kBytesMax.
  char* write(double value, char* out);
  // The same where that is a decimal of few places without an exponent, from 0.001 on; else, or
  // where it does not try, null.
  char* write_decimal(double value, char* out);

 private:
  static constexpr unsigned kPlacesMax = 6;
  static constexpr unsigned kPassOver = 32;

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
