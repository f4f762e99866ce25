#include "wire/names.h"

#include <doctest/doctest.h>

#include <string>

#include "wire/reading.h"

using namespace edgecase;

TEST_CASE("names: what people call things is allowed") {
  const std::string longest(wire::kDeviceNameMaxBytes, 'x');
  for (const std::string& name :
       {std::string("kitchen"), std::string("0e:9c:00:4c:1c:51"), std::string("Wohn zimmer"),
        std::string("K\xc3\xbc"
                    "che"),
        std::string("\xe6\xb8\xa9\xe5\xba\xa6"), std::string("\xf0\x9f\x8c\xa1"), std::string("*"),
        std::string("?"), std::string("a\\b"), std::string("."), std::string(".."),
        std::string("a,b=c"), std::string("\"q\""), std::string("\xc2\xa0"), std::string("~"),
        longest}) {
    CAPTURE(name);
    CHECK(wire::check_name("device", name).ok());
  }
}

TEST_CASE("names: what is refused, and why") {
  struct Case {
    std::string name;
    const char* why;
  };
  for (const Case& c : {
           Case{"", "is empty"},
           Case{std::string(wire::kSensorNameMaxBytes + 1, 'x'), "1025 bytes"},
           Case{"a/b", "'/'"},
           Case{"/", "'/'"},
           Case{std::string("a\0b", 3), "control"},
           Case{"a\nb", "control"},
           Case{"a\x1f", "control"},
           Case{"a\x7f", "control"},
           Case{"a\xc2\x80", "control"},
           Case{"a\xc2\x9f", "control"},
           Case{"a\xff", "UTF-8"},
           Case{"a\xc3", "UTF-8"},
       }) {
    CAPTURE(c.name);
    const Status status = wire::check_name("sensor", c.name);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().find(c.why) != std::string::npos);
    CHECK(status.message().find("sensor") == 0);
  }
}

TEST_CASE("names: UTF-8 is taken strictly") {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(good);
    CHECK(wire::is_valid_utf8(good));
  }
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x80\x80", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xe2\x82", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff"}) {
    CAPTURE(bad);
    for (std::size_t before = 0; before < 18; ++before) {
      CHECK_FALSE(wire::is_valid_utf8(std::string(before, 'x') + bad));
      CHECK_FALSE(wire::is_valid_utf8(std::string(before, 'x') + bad + std::string(9, 'y')));
    }
  }
}
