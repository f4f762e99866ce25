#include "wire/selector.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace edgecase::wire {
namespace {

Selection parse(const SelectionTexts& texts) {
  const auto selection = parse_selection(texts);
  REQUIRE_MESSAGE(selection.ok(), selection.status().to_string());
  return *selection;
}

TEST_CASE("selection: any of the selectors, and everything without one") {
  CHECK(parse({}).matches("kitchen", "temp"));
  CHECK(parse({}).text() == "*/*");
  const Selection two = parse({{"kitchen/temp", "hall*"}, {}, {}, {}});
  CHECK(two.matches("kitchen", "temp"));
  CHECK(two.matches("hall2", "hum"));
  CHECK_FALSE(two.matches("kitchen", "hum"));
  CHECK(two.matches_device("kitchen"));
  CHECK_FALSE(two.matches_device("attic"));
  CHECK_FALSE(two.is_exact());
  CHECK_FALSE(two.names_devices());
  CHECK(parse({{"a/b", "c/*"}, {}, {}, {}}).names_devices());
  CHECK(parse({{"a/b", "c/d"}, {}, {}, {}}).is_exact());
  CHECK(two.within("hall?").selectors.size() == 1);
  CHECK(two.within("hall?").selectors[0].device == "hall\\?");
  CHECK(two.within("attic").selectors.empty());
  CHECK(two.text() == "kitchen/temp and 1 more selector");
}

TEST_CASE("selection: one of the measurements, one of the fields and all of the tags") {
  const Identity cpu{"cpu", {{"cpu", "cpu0"}, {"host", "pi"}}, "usage_idle"};
  struct Case {
    std::vector<std::string> measurements, tags, fields;
    bool holds;
  };
  const Case cases[] = {{{}, {}, {}, true},
                        {{"cpu"}, {}, {}, true},
                        {{"c*"}, {}, {}, true},
                        {{"mem", "cpu"}, {}, {}, true},
                        {{"mem"}, {}, {}, false},
                        {{}, {"host=pi"}, {}, true},
                        {{}, {"host=pi", "cpu=cpu?"}, {}, true},
                        {{}, {"host=pi", "cpu=cpu1"}, {}, false},
                        {{}, {"none=*"}, {}, false},
                        {{}, {}, {"usage_idle", "x"}, true},
                        {{}, {}, {"usage"}, false},
                        {{"cpu"}, {"host=pi"}, {"usage_*"}, true},
                        {{"cpu"}, {"host=pi"}, {"x"}, false}};
  for (const Case& c : cases) {
    const Selection selection = parse({{}, c.measurements, c.tags, c.fields});
    CAPTURE(selection.text());
    CHECK(selection.identity.hold_for(cpu) == c.holds);
  }
  // A key may hold what stands between it and its value.
  const Identity odd{"m", {{"a=b", "c*d"}}, "f"};
  CHECK(parse({{}, {}, {"a\\=b=c\\*d"}, {}}).identity.hold_for(odd));
  CHECK_FALSE(parse({{}, {}, {"a\\=b=c\\*"}, {}}).identity.hold_for(odd));
}

TEST_CASE("selection: what is wrong is said") {
  const std::vector<std::string> many(kSelectorsMax + 1, "a");
  struct Case {
    SelectionTexts texts;
    const char* says;
  };
  const Case cases[] = {
      {{{""}, {}, {}, {}}, "empty selector"},
      {{{"a/b", "a/b/c"}, {}, {}, {}}, "\"a/b/c\": selector has more than one '/'"},
      {{many, {}, {}, {}}, "101 selectors; at most 100"},
      {{{}, many, {}, {}}, "101 measurements; at most 100"},
      {{{}, {""}, {}, {}}, "the measurement is empty"},
      {{{}, {}, {"host"}, {}}, "KEY=VALUE, as in host=pi, not \"host\""},
      {{{}, {}, {""}, {}}, "KEY=VALUE"},
      {{{}, {}, {"=pi"}, {}}, "KEY=VALUE"},
      {{{}, {}, {"host="}, {}}, "tag host has no value"},
      {{{}, {}, {"host=a\\"}, {}}, "ends in a lone \\"},
      {{{}, {}, {"host=\xff"}, {}}, "is not UTF-8"},
      {{{}, {}, {}, {""}}, "the field is empty"},
      {{{}, {}, {}, {std::string(kIdentityMaxBytes + 1, 'f')}}, "the field is too long"}};
  for (const Case& c : cases) {
    const auto refused = parse_selection(c.texts);
    CHECK(refused.status().code() == StatusCode::InvalidArgument);
    CHECK_MESSAGE(refused.status().message().find(c.says) != std::string::npos,
                  refused.status().message());
  }
}

}  // namespace
}  // namespace edgecase::wire
