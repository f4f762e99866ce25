#include "wire/decimal.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "edgecase/random.h"
#include "support/test_share.h"

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
