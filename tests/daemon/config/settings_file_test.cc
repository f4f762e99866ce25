#include <doctest/doctest.h>

#include <string>

#include "config/configuration.h"

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
           "a = [1, \"\xc3\xa4\", -2.5, '\xc3\xa4']\n",
           "a = [\n1, # one\n\"\xc3\xa4\"]\n",
           "a = { 0=\"\xc3\xa4\", b = 1979-05-27 }\nc = '\xc3\xa4'",
           "0=\"\xc3\xa4\"\n1.\"\xc3\xa4\" = 5 # \xc3\xa4\n2-\"\xc3\xa4\"",
           "a.0.\"\xc3\xa4\" = 5",
           "a = \"\"\"\\\\\xc3\xa4 \\\n  b\xc3\xa4\"\"\"",
           "a = '''\\\n\xc3\xa4'''",
       }) {
    CAPTURE(text);
    CHECK(told(text).empty());
  }
}

TEST_CASE("TOML characters: others are told with their place") {
  const std::string control = ": not TOML: a control character";
  const std::string bare = ": not TOML: a character that belongs in quotes";
  const std::string behind =
      ": not TOML: a character beyond ASCII right behind a backslash, or the blanks after one";
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
      // No quotes begin in a number, nor in what would be one.
      {"a =0\"b\xc3\xa4\"", "x.toml:1:7" + bare},
      {"a = -'\xc3\xa4'", "x.toml:1:7" + bare},
      {"a = +\"\"\"\xc3\xa4", "x.toml:1:9" + bare},
      {"a = 0x=\"\xc3\xa4", "x.toml:1:9" + bare},
      {"a = 0.\"\xc3\xa4", "x.toml:1:8" + bare},
      {"a = 0[\"\xc3\xa4", "x.toml:1:8" + bare},
      {"a = 1979-05-27T\"\xc3\xa4", "x.toml:1:17" + bare},
      {"a = 1979-05-27 07:\"\xc3\xa4", "x.toml:1:20" + bare},
      {"a = [0\"\xc3\xa4", "x.toml:1:8" + bare},
      {"a = [1, # one\n2\"\xc3\xa4", "x.toml:2:3" + bare},
      {"a = { b = 3\"\xc3\xa4\" }", "x.toml:1:13" + bare},
      {"a = \"\"\"\\\xc3\xa4\"\"\"", "x.toml:1:9" + behind},
      {"a = \"\"\"b\\ \n\n \xef\xbb\x9f\"\"\"", "x.toml:3:2" + behind},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    CHECK(told(each.text) == each.what);
  }
}

}  // namespace
}  // namespace edgecase::config
