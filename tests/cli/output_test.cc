#include "output.h"

#include <cstdio>
#include <limits>
#include <string>

#include <doctest/doctest.h>

namespace edgecase::cli {
namespace {

// What `print` writes to a stream.
template <typename Print>
std::string printed(Print print) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  print(file);
  std::rewind(file);
  std::string text(65536, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST_CASE("display width counts what a terminal shows") {
  CHECK(display_width("") == 0);
  CHECK(display_width("abc") == 3);
  CHECK(display_width("Küche") == 5);
  CHECK(display_width("e\xcc\x81") == 1);  // e and a combining accent
  CHECK(display_width("温度") == 4);
  CHECK(display_width("\xf0\x9f\x8c\xa1") == 2);  // a thermometer
  CHECK(display_width("\xff") == 1);
}

TEST_CASE("nothing that is printed moves the cursor") {
  CHECK(printable("plain Küche 温度") == "plain Küche 温度");
  CHECK(printable("a\nb\tc") == "a\\nb\\tc");
  CHECK(printable("\x1b[31m") == "\\x1b[31m");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");  // C1 control
  CHECK(printable("a\xe2\x80\xae"
                  "b") == "a\\xe2\\x80\\xaeb");  // turns the reading direction
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");  // no UTF-8
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");  // an overlong zero
}

TEST_CASE("short_time drops decimals that are zero, three at a time") {
  CHECK(short_time(1'763'647'200'000'000'000) == "2025-11-20T14:00:00Z");
  CHECK(short_time(1'763'647'200'100'000'000) == "2025-11-20T14:00:00.100Z");
  CHECK(short_time(1'763'647'200'000'001'000) == "2025-11-20T14:00:00.000001Z");
  CHECK(short_time(1'763'647'200'000'000'001) == "2025-11-20T14:00:00.000000001Z");
  CHECK(short_time(0) == "1970-01-01T00:00:00Z");
}

TEST_CASE("ages, counts and rates") {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  CHECK(age_text(0) == "0ms");
  CHECK(age_text(kSecondNs) == "1s");
  CHECK(age_text(59 * kSecondNs) == "59s");
  CHECK(age_text(60 * kSecondNs) == "1m");
  CHECK(age_text(86'400 * kSecondNs) == "1d");
  CHECK(age_text(-1) == "in the future");
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1'000) == "1,000");
  CHECK(count_text(1'234'567) == "1,234,567");
  CHECK(count_of(0, "reading") == "0 readings");
  CHECK(count_of(1, "reading") == "1 reading");
  CHECK(count_of(1'000, "reading") == "1,000 readings");
  CHECK(count_of(1, "window goes", "windows go") == "1 window goes");
  CHECK(count_of(2, "window goes", "windows go") == "2 windows go");
  CHECK(rate_text(0) == "-");
  CHECK(rate_text(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(rate_text(1) == "1/s");
  CHECK(rate_text(1234.4) == "1234/s");
  CHECK(rate_text(0.5) == "30/m");
  CHECK(rate_text(1.0 / 86'400) == "1/d");
}

TEST_CASE("tables align by what is seen") {
  const std::string text = printed([](std::FILE* out) {
    Table table({{"NAME", Align::Left}, {"N", Align::Right}}, out);
    table.row({"温度", "1"});
    table.row({"a", "1,000"});
    table.flush();
  });
  CHECK(text == "NAME      N\n温度      1\na     1,000\n");
}

TEST_CASE("a table without rows prints nothing") {
  CHECK(printed([](std::FILE* out) { Table({{"NAME", Align::Left}}, out).flush(); }).empty());
}

TEST_CASE("a long table is printed in parts under one header") {
  const std::string text = printed([](std::FILE* out) {
    Table table({{"X", Align::Left}}, out);
    for (std::size_t i = 0; i < Table::kRowsPerPart + 1; ++i) table.row({"y"});
    table.flush();
    CHECK(table.rows() == Table::kRowsPerPart + 1);
  });
  CHECK(text.starts_with("X\ny\n"));
  CHECK(text.find('X', 1) == std::string::npos);
  CHECK(text.size() == 2 * (Table::kRowsPerPart + 2));
}

TEST_CASE("a table fits the terminal: names are cut, numbers and times are not") {
  const std::vector<Table::Column> columns = {{"SERIES"}, {"TIME"}, {"VALUE", Align::Right}};
  const auto table = [&columns](std::size_t width) {
    return printed([&](std::FILE* file) {
      Table made(columns, file, width);
      made.row({"plant/a-very-long-name-of-a-sensor", "2026-11-20T14:00:00Z", "-1234567.25"});
      made.row({"K\u00fcche/temperature", "2026-11-20T14:00:00Z", "a long text that is cut too"});
      made.flush();
    });
  };
  CHECK(table(60) ==
        "SERIES              TIME                               VALUE\n"
        "plant/a-very-long~  2026-11-20T14:00:00Z         -1234567.25\n"
        "K\u00fcche/temperature   2026-11-20T14:00:00Z  a long text that ~\n");
  // Narrower than what has to be shown: as narrow as that is.
  CHECK(table(1) ==
        "SERIES            TIME                             VALUE\n"
        "plant/a-very-lo~  2026-11-20T14:00:00Z       -1234567.25\n"
        "K\u00fcche/temperatu~  2026-11-20T14:00:00Z  a long text tha~\n");
  CHECK(table(0).find('~') == std::string::npos);
  CHECK(table(200) == table(0));
}

}  // namespace

namespace {

TEST_CASE("progress says how long the rest takes once it can tell") {
  struct Case {
    double share, seconds;
    const char* left;
  };
  for (const Case& c : {Case{0.5, 1, ""}, Case{0.001, 100, ""}, Case{0, 50, ""},
                        Case{0.5, 10, "10s"}, Case{0.25, 25, "1m 15s"}, Case{0.1, 1'000, "2h 30m"},
                        Case{1, 10, "0s"}, Case{1.5, 10, "0s"}, Case{0.006, 1e12, "99h 00m"}}) {
    CAPTURE(c.share);
    CAPTURE(c.seconds);
    CHECK(time_left(c.share, c.seconds) == c.left);
  }
}

}  // namespace
}  // namespace edgecase::cli
