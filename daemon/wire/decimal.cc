#include "wire/decimal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace edgecase::wire {
namespace {

// Both the digits as an integer up to 2^53 and a power of ten up to 10^22 are exact doubles, so one
// division rounds once, and so correctly.
constexpr std::uint64_t kExactIntegerMax = std::uint64_t{1} << 53;
constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kExactPowerMax = 22;
constexpr int kDigitsMax = 19;  // that many never overflow 64 bits

// Any length, any exponent. from_chars does not tell overflow from underflow: strtod does.
DecimalOutcome parse_slowly(const char* begin, const char* number_end, double& value) {
  const auto [stop, error] = std::from_chars(begin, number_end, value);
  if (error == std::errc{} && stop == number_end) return DecimalOutcome::Ok;
  if (error != std::errc::result_out_of_range) return DecimalOutcome::NotANumber;
  value = std::strtod(std::string(begin, number_end).c_str(), nullptr);
  return std::isfinite(value) ? DecimalOutcome::Ok : DecimalOutcome::TooLarge;
}

// The usual number: at most seven digits and a point, and something behind them that ends it. Eight
// characters at a time, no loop. False: it is another one, nothing was changed.
bool parse_short(const char*& position, const char* end, double& value) {
  if constexpr (std::endian::native != std::endian::little) return false;
  const char* p = position;
  const bool negative = p < end && *p == '-';
  p += negative ? 1 : 0;
  if (end - p < 8) return false;
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  const std::uint64_t digits = word ^ 0x3030303030303030u;
  // The highest bit of each byte that is no digit; exact up to the first that is no point either.
  std::uint64_t others = ((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u;
  if (others == 0) return false;
  auto bytes = static_cast<unsigned>(std::countr_zero(others)) / 8;
  const auto character = [word](unsigned at) { return static_cast<char>(word >> (8 * at)); };
  std::uint64_t number = digits;
  unsigned count = bytes, fraction_digits = 0;
  if (character(bytes) == '.') {
    others &= others - 1;
    if (others == 0) return false;
    const unsigned point = bytes;
    bytes = static_cast<unsigned>(std::countr_zero(others)) / 8;
    fraction_digits = bytes - point - 1;
    count = bytes - 1;
    const std::uint64_t before = (std::uint64_t{1} << (8 * point)) - 1;
    number = (digits & before) | ((digits >> 8) & ~before);
  }
  const char next = character(bytes);
  if (count == 0 || next == '.' || next == 'e' || next == 'E') return false;
  // Digits to the end of the word, zeros before them; then pairs, fours and eight are added up.
  number <<= 64 - 8 * count;
  number = (number * 10 + (number >> 8)) & 0x00ff00ff00ff00ffu;
  number = (number * 100 + (number >> 16)) & 0x0000ffff0000ffffu;
  number = (number * 10'000 + (number >> 32)) & 0xffffffffu;
  value = static_cast<double>(static_cast<std::int64_t>(number)) / kPowersOfTen[fraction_digits];
  if (negative) value = -value;
  position = p + bytes;
  return true;
}

}  // namespace

DecimalOutcome parse_decimal(const char*& position, const char* end, double& value) {
  if (parse_short(position, end, value)) return DecimalOutcome::Ok;
  const char* p = position;
  bool negative = false;
  if (p < end && (*p == '-' || *p == '+')) {
    negative = *p == '-';
    ++p;
  }
  const char* const unsigned_begin = p;
  std::uint64_t digits = 0;
  while (p < end && is_digit(*p)) digits = digits * 10 + static_cast<std::uint64_t>(*p++ - '0');
  int digit_count = static_cast<int>(p - unsigned_begin);
  int fraction_digits = 0;
  if (p < end && *p == '.') {
    const char* const fraction = ++p;
    while (p < end && is_digit(*p)) digits = digits * 10 + static_cast<std::uint64_t>(*p++ - '0');
    fraction_digits = static_cast<int>(p - fraction);
    digit_count += fraction_digits;
  }
  if (digit_count == 0) return DecimalOutcome::NotANumber;

  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end && (*p == '-' || *p == '+')) ++p;
    const char* const exponent = p;
    while (p < end && is_digit(*p)) ++p;
    if (p == exponent) return DecimalOutcome::NotANumber;
    digit_count = kDigitsMax + 1;  // to the slow path
  }
  DecimalOutcome outcome = DecimalOutcome::Ok;
  if (digit_count <= kDigitsMax && digits <= kExactIntegerMax &&
      fraction_digits <= kExactPowerMax) {
    value = static_cast<double>(digits) / kPowersOfTen[fraction_digits];
  } else {
    outcome = parse_slowly(unsigned_begin, p, value);
  }
  if (negative) value = -value;
  position = p;
  return outcome;
}

}  // namespace edgecase::wire
