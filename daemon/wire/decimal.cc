#include "wire/decimal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "wire/names.h"

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

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";
constexpr std::string_view kAtEnd{" \t\r\n\v\f\0", 7};

// C, JavaScript, Python, Arduino and SQL between them; without a sign, in lower case.
constexpr std::array<std::string_view, 12> kNoValueWords = {
    "nan",     "inf",    "infinity",  "null",     "ovf",    "nan(ind)",
    "1.#qnan", "1.#inf", "nan(snan)", "1.#ind00", "1.#ind", "1.#qnan0"};
constexpr std::size_t kNoValueMaxBytes = 9;

bool means_no_value(std::string_view text) {
  if (text.empty()) return true;
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  if (text.size() > kNoValueMaxBytes) return false;
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(kNoValueWords.begin(), kNoValueWords.end(), lower) != kNoValueWords.end();
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

std::optional<ExactDecimal> read_exact_decimal(std::string_view text) {
  constexpr std::size_t kExactDigitsMax = 64;
  ExactDecimal result;
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) result.negative = text[i++] == '-';
  bool any = false;
  bool fraction = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!is_digit(text[i])) break;
    any = true;
    if (result.digits.empty() && text[i] == '0') {
      result.exponent -= fraction ? 1 : 0;
      continue;
    }
    if (result.digits.size() < kExactDigitsMax) {
      result.digits += text[i];
      result.exponent -= fraction ? 1 : 0;
    } else if (!fraction) {
      return std::nullopt;
    }
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int exponent = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (error != std::errc() || exponent > 400 || exponent < -400) return std::nullopt;
    result.exponent += exponent;
    i = static_cast<std::size_t>(end - text.data());
  }
  if (i != text.size()) return std::nullopt;
  return result;
}

// digits * 10^(exponent + shift), cut to a whole number.
std::optional<std::int64_t> scaled(const ExactDecimal& decimal, int shift) {
  if (decimal.digits.empty()) return 0;
  std::string digits = decimal.digits;
  const int exponent = decimal.exponent + shift;
  if (exponent < 0) {
    const auto cut = static_cast<std::size_t>(-exponent);
    if (cut >= digits.size()) return 0;
    digits.resize(digits.size() - cut);
  } else {
    if (digits.size() + static_cast<std::size_t>(exponent) > 19) return std::nullopt;
    digits.append(static_cast<std::size_t>(exponent), '0');
  }
  if (decimal.negative) digits.insert(digits.begin(), '-');
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string_view trimmed_text(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  const std::size_t last = text.find_last_not_of(kAtEnd);
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

NumberText read_number(std::string_view text, double& value) {
  text = trimmed_text(text);
  const char* position = text.data();
  const char* const end = position + text.size();
  double number = 0;
  const DecimalOutcome outcome = parse_decimal(position, end, number);
  if (outcome == DecimalOutcome::NotANumber || position != end) {
    return means_no_value(text) ? NumberText::NoValue : NumberText::Other;
  }
  if (outcome == DecimalOutcome::TooLarge) return NumberText::TooLarge;
  value = number;
  return NumberText::Number;
}

std::string number_problem(std::string_view text) {
  constexpr std::size_t kShownBytes = 48;
  text = trimmed_text(text);
  std::string shown(text.substr(0, kShownBytes));
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  while (!shown.empty() && !is_valid_utf8(shown)) shown.pop_back();
  std::string problem = "\"" + shown + (shown.size() < text.size() ? "...\"" : "\"");
  double value = 0;
  switch (read_number(text, value)) {
    case NumberText::Number: return problem + " is a number";
    case NumberText::NoValue: return problem + " says that there is no value";
    case NumberText::TooLarge: return problem + " is too large for a float of 64 bits";
    case NumberText::Other: break;
  }
  problem += " is no decimal number";
  const std::string_view digits = text.substr(text.find_first_not_of("+-") == 1 ? 1 : 0);
  if (digits.starts_with("0x") || digits.starts_with("0X")) return problem + ": it is hexadecimal";
  if (text.find(',') != std::string_view::npos) return problem + ": it holds a comma";
  if (text.find('_') != std::string_view::npos) return problem + ": it holds an underscore";
  if (!text.empty() && is_digit(text.front())) return problem + ": there is something behind it";
  return problem;
}

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kDay = 86'400;

constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

void write_pair(std::uint32_t number, char* out) {
  std::memcpy(out, kPairs.data() + std::size_t{2} * number, 2);
}

// With zeros in front.
void write_digits(std::uint32_t number, unsigned digits, char* out) {
  for (; digits > 1; digits -= 2, number /= 100) write_pair(number % 100, out + digits - 2);
  if (digits == 1) *out = static_cast<char>('0' + number % 10);
}

struct Date {
  std::int64_t year, month, day;
};

// The other way round of days_from_date in time_text.cc, with years that begin in March.
Date date_from_days(std::int64_t days) {
  days += 719'468;  // from 0000-03-01
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const std::int64_t day_of_era = days - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const std::int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kWholePowersOfTen[] = {1,
                                               10,
                                               100,
                                               1'000,
                                               10'000,
                                               100'000,
                                               1'000'000,
                                               10'000'000,
                                               100'000'000,
                                               1'000'000'000,
                                               10'000'000'000,
                                               100'000'000'000,
                                               1'000'000'000'000,
                                               10'000'000'000'000,
                                               100'000'000'000'000,
                                               1'000'000'000'000'000,
                                               10'000'000'000'000'000,
                                               100'000'000'000'000'000,
                                               1'000'000'000'000'000'000,
                                               10'000'000'000'000'000'000u};
constexpr unsigned kFractionDigitsMax = 19;  // of 17 from 0.001 on
constexpr auto kPowersOfFive = [] {
  std::array<std::uint64_t, kFractionDigitsMax + 1> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 5;
  return powers;
}();

// The shortest decimal that reads back as `size`, which is from 0.001 on and less than 10^15, and
// of those the closest. With 17 digits a double and halves of its distances to both neighbours are
// whole numbers of 128 bits, of which `unit` makes one of those digits: nothing is rounded.
// False: a power of two, whose neighbours are not equally far.
bool find_shortest(double size, ShortDecimal& shortest) {
  constexpr unsigned kFractionBits = 52, kExponentBias = 1023 + kFractionBits;
  constexpr std::uint64_t kHiddenBit = std::uint64_t{1} << kFractionBits;
  constexpr double kFractions[] = {1, 0.1, 0.01, 0.001};
  const auto bits = std::bit_cast<std::uint64_t>(size);
  if (bits % kHiddenBit == 0) return false;
  const std::uint64_t number = bits % kHiddenBit + kHiddenBit;
  const int exponent = static_cast<int>(bits >> kFractionBits) - static_cast<int>(kExponentBias);
  unsigned places = 16;
  if (size >= 1) {
    for (unsigned whole = 1; size >= kPowersOfTen[whole]; ++whole) --places;
  } else {
    for (unsigned zeros = 1; size < kFractions[zeros - 1]; ++zeros) ++places;
  }
  // In halves of distances, which are 5^places of 2^shift.
  const auto shift = static_cast<unsigned>(1 - exponent - static_cast<int>(places));
  const std::uint64_t half = kPowersOfFive[places];
  const Wide middle = Wide{2 * number} * half;
  const std::uint64_t unit = std::uint64_t{1} << shift;
  const std::uint64_t takes_ends = number % 2 == 0 ? 0 : 1;
  auto first = static_cast<std::uint64_t>((middle - half + takes_ends + (unit - 1)) >> shift);
  auto last = static_cast<std::uint64_t>((middle + half - takes_ends) >> shift);
  auto digits = static_cast<std::uint64_t>(middle >> shift);
  const std::uint64_t part = static_cast<std::uint64_t>(middle) & (unit - 1);
  bool is_more = part > unit / 2, is_half = part == unit / 2;  // of the last digit is cut off
  bool is_exact = part == 0;
  for (; places > 0 && last / 10 >= (first + 9) / 10; --places) {
    const std::uint64_t cut = digits % 10;
    is_more = cut > 5 || (cut == 5 && !is_exact);
    is_half = cut == 5 && is_exact;
    is_exact = is_exact && cut == 0;
    digits /= 10;
    last /= 10;
    first = (first + 9) / 10;
  }
  const bool is_up = is_more || (is_half && digits % 2 != 0);
  shortest = {digits + (is_up ? 1 : 0), places};
  return true;
}

char* write_shortest(double value, char* out) {
  if (value == 0) {
    const bool is_negative = std::signbit(value);
    std::memcpy(out, is_negative ? "-0.0" : "0", is_negative ? 4 : 1);
    return out + (is_negative ? 4 : 1);
  }
  return std::to_chars(out, out + DoublePrinter::kBytesMax, value).ptr;
}

}  // namespace

char* write_int(std::int64_t number, char* out) {
  return std::to_chars(out, out + 20, number).ptr;
}

char* DoublePrinter::write(double value, char* out) {
  char* const end = write_decimal(value, out);
  return end != nullptr ? end : write_shortest(value, out);
}

// A decimal of at most 15 digits is read as another double than any other such decimal. So where
// digits / 10^places is the double, they are its shortest digits, but for zeros at their end.
bool DoublePrinter::find_few_places(double size, ShortDecimal& decimal) {
  if (pass_over_ > 0) {
    --pass_over_;
    return false;
  }
  for (unsigned places = places_;; ++places) {
    const double power = kPowersOfTen[places];
    decimal = {static_cast<std::uint64_t>(size * power + 0.5), places};
    if (static_cast<double>(decimal.digits) / power == size) break;
    if (places == kPlacesMax) {
      pass_over_ = kPassOver;
      return false;
    }
  }
  places_ = decimal.places;
  for (; decimal.places > 0 && decimal.digits % 10 == 0; --decimal.places) decimal.digits /= 10;
  return true;
}

// From 0.001 on, and without many zeros before the point, the shortest text has no exponent.
char* DoublePrinter::write_decimal(double value, char* out) {
  constexpr double kWholeMax = 1e9;
  constexpr std::uint64_t kWithoutExponent = 100'000;
  const double size = std::fabs(value);
  if (!(size >= 0.001 && size < kWholeMax)) return nullptr;
  ShortDecimal decimal;
  if (!find_few_places(size, decimal)) {
    if (!find_shortest(size, decimal)) return nullptr;
  }
  if (decimal.places == 0 && decimal.digits >= kWithoutExponent) return nullptr;
  if (std::signbit(value)) *out++ = '-';
  // Whole numbers are doubles themselves: no other one is read where one of them is printed.
  const auto whole = static_cast<std::uint32_t>(size);
  out = std::to_chars(out, out + 10, whole).ptr;
  if (decimal.places == 0) return out;
  *out++ = '.';
  std::uint64_t fraction = decimal.digits - whole * kWholePowersOfTen[decimal.places];
  unsigned digits = decimal.places;
  for (; digits > 8; digits -= 8) {
    write_digits(static_cast<std::uint32_t>(fraction % 100'000'000), 8, out + digits - 8);
    fraction /= 100'000'000;
  }
  write_digits(static_cast<std::uint32_t>(fraction), digits, out);
  return out + decimal.places;
}

void TimePrinter::write(std::int64_t time_ns, char* out) {
  std::int64_t seconds = time_ns / kSecond;
  std::int64_t nanoseconds = time_ns % kSecond;
  if (nanoseconds < 0) {
    nanoseconds += kSecond;
    --seconds;
  }
  std::int64_t day = seconds / kDay;
  std::int64_t second_of_day = seconds % kDay;
  if (second_of_day < 0) {
    second_of_day += kDay;
    --day;
  }
  if (day != day_) {
    const Date date = date_from_days(day);
    write_digits(static_cast<std::uint32_t>(date.year), 4, date_);
    date_[4] = date_[7] = '-';
    write_pair(static_cast<std::uint32_t>(date.month), date_ + 5);
    write_pair(static_cast<std::uint32_t>(date.day), date_ + 8);
    date_[10] = 'T';
    day_ = day;
  }
  const auto second = static_cast<std::uint32_t>(second_of_day);
  std::memcpy(out, date_, sizeof date_);
  write_pair(second / 3'600, out + 11);
  out[13] = out[16] = ':';
  write_pair(second / 60 % 60, out + 14);
  write_pair(second % 60, out + 17);
  out[19] = '.';
  write_digits(static_cast<std::uint32_t>(nanoseconds), 9, out + 20);
  out[29] = 'Z';
}

void append_double(double value, std::string& out) {
  std::array<char, DoublePrinter::kBytesMax> text;
  out.append(text.data(), write_shortest(value, text.data()));
}

void append_time(std::int64_t time_ns, std::string& out) {
  std::array<char, TimePrinter::kBytes> text;
  TimePrinter().write(time_ns, text.data());
  out.append(text.data(), text.size());
}

}  // namespace edgecase::wire
