#include "config/toml_characters.h"

#include <doctest/doctest.h>

#include <string>

namespace edgecase::config {
namespace {

std::string told(std::string_view text) {
  const Status status = check_toml_characters(text, "x.toml");
  return status.ok() ? std::string() : std::string(status.message());
}

TEST_CASE("TOML characters: what belongs in quotes or comments is taken there") {
  for (const char* text : {
           "",
           "a = 1\n",
           "\xef\xbb\xbf# a mark at the beginning\na = 1\n",
           "a = \"\xc3\xa4\" # \xc3\xa4\r\nb = 2\n",
           "a = '\xc3\xa4\\' # '\n",
           "a = \"\\\"\xc3\xa4\"\n",
           "a = \"\\\\\" # \xc3\xa4\n",
           "a = \"\"\"\n\xc3\xa4 \" \"\"\"\n",
           "a = '''\n\xc3\xa4 ' '''\n",
           "\"\xef\xb9\xbf\" = \"\"\n",
           "a = \"\" # \xef\xb9\xbf",
       }) {
    CAPTURE(text);
    CHECK(told(text).empty());
  }
}

TEST_CASE("TOML characters: others are told with their place") {
  const std::string control = ": not TOML: a control character";
  const std::string bare = ": not TOML: a character that belongs in quotes";
  const struct {
    std::string_view text;
    std::string what;
  } cases[] = {
      {{"[\0", 2}, "x.toml:1:2" + control},
      {"a = \"\x01\"", "x.toml:1:6" + control},
      {"a = \"\\\x01\"", "x.toml:1:7" + control},
      {"# \xc3\xa4\x7f", "x.toml:1:4" + control},
      {"a = 1\n\xef\xb9\xbf", "x.toml:2:1" + bare},
      {"z\xef\xb9\xbf=n", "x.toml:1:2" + bare},
      {"a = \"\"\n\xc3\xa4", "x.toml:2:1" + bare},
      {"a = \"never closed\n\xc3\xa4", "x.toml:2:1" + bare},
      {"a = \"\"\"x\"\"\"\xc3\xa4", "x.toml:1:12" + bare},
      {"a = '\\' \xc3\xa4", "x.toml:1:9" + bare},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    CHECK(told(each.text) == each.what);
  }
}

}  // namespace
}  // namespace edgecase::config
