#include "wire/number_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace edgecase::wire {
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
// digits / 10^places is the double, they are its shortest digits, but for zeros at their end. From
// 0.001 on, and without many zeros before the point, the shortest text of them has no exponent.
char* DoublePrinter::write_decimal(double value, char* out) {
  constexpr double kPowers[kPlacesMax + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
  constexpr std::uint32_t kWholePowers[kPlacesMax + 1] = {1,      10,      100,      1'000,
                                                          10'000, 100'000, 1'000'000};
  constexpr double kWholeMax = 1e9;
  constexpr std::uint64_t kWithoutExponent = 100'000;
  if (pass_over_ > 0) {
    --pass_over_;
    return nullptr;
  }
  const double size = std::fabs(value);
  if (!(size >= 0.001 && size < kWholeMax)) return nullptr;
  unsigned places = places_;
  std::uint64_t digits = 0;
  for (;; ++places) {
    digits = static_cast<std::uint64_t>(size * kPowers[places] + 0.5);
    if (static_cast<double>(digits) / kPowers[places] == size) break;
    if (places == kPlacesMax) {
      pass_over_ = kPassOver;
      return nullptr;
    }
  }
  places_ = places;
  for (; places > 0 && digits % 10 == 0; --places) digits /= 10;
  if (places == 0 && digits >= kWithoutExponent) return nullptr;
  if (std::signbit(value)) *out++ = '-';
  const std::uint32_t power = kWholePowers[places];
  out = std::to_chars(out, out + 10, static_cast<std::uint32_t>(digits / power)).ptr;
  if (places == 0) return out;
  *out = '.';
  write_digits(static_cast<std::uint32_t>(digits % power), places, out + 1);
  return out + 1 + places;
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
