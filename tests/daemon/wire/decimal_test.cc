#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "support/test_share.h"
#include "wire/decimal.h"

namespace edgecase::wire {
namespace {

DecimalOutcome parse(const std::string& text, double& value, std::size_t& used) {
  const char* position = text.data();
  const DecimalOutcome outcome = parse_decimal(position, text.data() + text.size(), value);
  used = static_cast<std::size_t>(position - text.data());
  return outcome;
}

}  // namespace

TEST_CASE("parse_decimal reads what strtod reads") {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "+1",
                           "21.5",
                           "-40.25",
                           "1.",
                           ".5",
                           "-.5",
                           "1e3",
                           "1E-3",
                           "1.5e+10",
                           "9007199254740992",
                           "9007199254740993",
                           "9007199254740992.5",
                           "0.1",
                           "0.30000000000000004",
                           "123456789012345678901234567890",
                           "1e308",
                           "1.7976931348623157e308",
                           "5e-324",
                           "2.2250738585072011e-308",
                           "0.00000000000000000000000000001",
                           "1e-400",
                           "0e999",
                           "00000000000000000000000000000000000001.5",
                           "1e-22",
                           "3.14159265358979323846"}) {
    CAPTURE(text);
    double value = 0;
    std::size_t used = 0;
    REQUIRE(parse(text, value, used) == DecimalOutcome::Ok);
    CHECK(used == std::string(text).size());
    CHECK(std::bit_cast<std::uint64_t>(value) ==
          std::bit_cast<std::uint64_t>(std::strtod(text, nullptr)));
  }
}

TEST_CASE("parse_decimal stops behind the number") {
  double value = 0;
  std::size_t used = 0;
  REQUIRE(parse("21.5,b=2", value, used) == DecimalOutcome::Ok);
  CHECK(used == 4);
  REQUIRE(parse("7i", value, used) == DecimalOutcome::Ok);
  CHECK(used == 1);
}

TEST_CASE("parse_decimal reads numbers of any length, whatever follows") {
  SeededRandom random(5);
  const std::string tails[] = {"",
                               ",a=1.5,b=2",
                               " 1700000000",
                               "i,b=3 1  ",
                               "\n2\n3\n4\n5\n6\n",
                               "/:::::::::",
                               "\xff\xb0\xb1\x80.5555",
                               std::string(9, '\0')};
  for (int round = 0; round < 20'000; ++round) {
    std::string number(random.below(2) == 0 ? "" : "-");
    const std::uint64_t digits = random.below(10), fraction_digits = random.below(10);
    for (std::uint64_t i = 0; i < digits; ++i) number += static_cast<char>('0' + random.below(10));
    if (random.below(4) != 0) {
      number += '.';
      for (std::uint64_t i = 0; i < fraction_digits; ++i)
        number += static_cast<char>('0' + random.below(10));
    }
    for (const std::string& tail : tails) {
      const std::string text = number + tail;
      CAPTURE(text);
      double value = 0;
      std::size_t used = 0;
      const DecimalOutcome outcome = parse(text, value, used);
      if (number.find_first_of("0123456789") == std::string::npos) {
        if (tail.empty() || !is_digit(tail[0])) REQUIRE(outcome == DecimalOutcome::NotANumber);
        continue;
      }
      REQUIRE(outcome == DecimalOutcome::Ok);
      REQUIRE(used == number.size());
      REQUIRE(std::bit_cast<std::uint64_t>(value) ==
              std::bit_cast<std::uint64_t>(std::strtod(number.c_str(), nullptr)));
    }
  }
}

TEST_CASE("parse_decimal refuses what is no finite number") {
  for (const char* text : {"", "-", "+", ".", "-.", "e5", "1e", "1e+", "nan", "inf", "-inf", "x"}) {
    CAPTURE(text);
    double value = 0;
    std::size_t used = 0;
    CHECK(parse(text, value, used) == DecimalOutcome::NotANumber);
    CHECK(used == 0);
  }
  for (const char* text : {"1e309", "-1e309", "1e99999999999"}) {
    CAPTURE(text);
    double value = 0;
    std::size_t used = 0;
    CHECK(parse(text, value, used) == DecimalOutcome::TooLarge);
  }
}

TEST_CASE("parse_decimal reads every printed double back") {
  const std::uint64_t seed = system_random().next();
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int i = 0; i < 50'000; ++i) {
    // Whole bit patterns, and values as sensors send them.
    double want = i % 2 == 0 ? std::bit_cast<double>(random.next())
                             : static_cast<double>(random.below(2'000'000)) / 1000.0 - 1000.0;
    if (!std::isfinite(want)) continue;
    char text[64];
    std::snprintf(text, sizeof(text), i % 4 == 1 ? "%.6g" : "%.17g", want);
    CAPTURE(text);
    want = std::strtod(text, nullptr);
    double value = 0;
    std::size_t used = 0;
    REQUIRE(parse(text, value, used) == DecimalOutcome::Ok);
    REQUIRE(std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(want));
  }
}

}  // namespace edgecase::wire

using namespace edgecase;

namespace {

std::string shortest(double value) {
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  std::array<char, 64> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string print(wire::DoublePrinter& printer, double value) {
  std::array<char, wire::DoublePrinter::kBytesMax> text;
  return {text.data(), printer.write(value, text.data())};
}

std::string print(wire::TimePrinter& printer, std::int64_t time_ns) {
  std::array<char, wire::TimePrinter::kBytes> text;
  printer.write(time_ns, text.data());
  return {text.data(), text.size()};
}

}  // namespace

TEST_CASE("doubles print as the shortest text, whatever was printed before") {
  wire::DoublePrinter printer;
  for (const double value : {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             21.5,
                             0.1,
                             0.3,
                             0.001,
                             0.0010,
                             0.0009,
                             -0.001,
                             0.002,
                             0.0123,
                             1e-3,
                             99999.0,
                             100000.0,
                             100001.0,
                             120000.0,
                             123456.0,
                             1234560.0,
                             1e9,
                             1e9 - 0.5,
                             999999999.999999,
                             123456789.123456,
                             0.1 + 0.2,
                             1.0 / 3,
                             5e-324,
                             1e300,
                             std::numeric_limits<double>::max(),
                             4503599627370496.5,
                             20.0,
                             10000.0,
                             20000.5}) {
    CAPTURE(value);
    CHECK(print(printer, value) == shortest(value));
    CHECK(print(printer, -value) == shortest(-value));
  }
  SeededRandom random(7);
  constexpr double kPowers[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7};
  for (std::uint64_t i = test::share_of(400'000); i > 0; --i) {
    double value = std::bit_cast<double>(random.next());
    if (random.below(8) != 0) {
      const std::uint64_t digits = random.below(std::uint64_t{1} << random.below(54));
      value = static_cast<double>(digits) / kPowers[random.below(8)];
      if (random.below(16) == 0) value = std::nextafter(value, 0);
    }
    // Means, and any double that is printed without an exponent, with its neighbours' digits.
    if (random.below(4) == 0)
      value = std::ldexp(std::bit_cast<double>(random.next() >> 12 | 0x3ff0'0000'0000'0000u),
                         static_cast<int>(random.below(42)) - 11);
    if (random.below(4) == 0)
      value = static_cast<double>(random.below(1'000'000)) / 10 /
              static_cast<double>(1 + random.below(600));
    if (!std::isfinite(value)) continue;
    const std::string text = print(printer, value);
    if (text != shortest(value)) FAIL(text << " is not " << shortest(value));
  }
}

TEST_CASE("times print alike, whatever was printed before") {
  wire::TimePrinter printer;
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  CHECK(print(printer, kMin) == "1677-09-21T00:12:43.145224192Z");
  CHECK(print(printer, kMax) == "2262-04-11T23:47:16.854775807Z");
  CHECK(print(printer, 0) == "1970-01-01T00:00:00.000000000Z");
  CHECK(print(printer, -1) == "1969-12-31T23:59:59.999999999Z");
  CHECK(print(printer, 951'782'400'000'000'001) == "2000-02-29T00:00:00.000000001Z");
  CHECK(print(printer, 951'868'799'123'456'789) == "2000-02-29T23:59:59.123456789Z");
  CHECK(print(printer, 951'868'800'000'000'000) == "2000-03-01T00:00:00.000000000Z");
  SeededRandom random(7);
  for (int i = 0; i < 2000; ++i) {
    const auto time_ns = static_cast<std::int64_t>(random.next());
    std::string text;
    wire::append_time(time_ns, text);
    REQUIRE(print(printer, time_ns) == text);
  }
}
