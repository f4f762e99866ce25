#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "wire/selector.h"

using namespace edgecase;

TEST_CASE("selector: globs match within one name") {
  struct Case {
    const char* glob;
    const char* name;
    bool want;
  };
  for (const Case& c : {
           Case{"*", "", true},
           Case{"*", "anything", true},
           Case{"", "", true},
           Case{"", "a", false},
           Case{"a", "a", true},
           Case{"a", "A", false},
           Case{"a*", "a", true},
           Case{"a*", "abc", true},
           Case{"*c", "abc", true},
           Case{"*c", "abd", false},
           Case{"a*c", "abbbc", true},
           Case{"a*c", "abbb", false},
           Case{"a*b*c", "a-b-b-c", true},
           Case{"**", "x", true},
           Case{"*a*a*", "aa", true},
           Case{"*a*a*", "a", false},
           Case{"?", "a", true},
           Case{"?", "", false},
           Case{"?", "ab", false},
           Case{"?", "\xc3\xbc", true},
           Case{"K?che",
                "K\xc3\xbc"
                "che",
                true},
           Case{"??", "\xf0\x9f\x8c\xa1\xc3\xbc", true},
           Case{"*?", "\xc3\xbc", true},
           Case{"\\*", "*", true},
           Case{"\\*", "a", false},
           Case{"\\?", "?", true},
           Case{"\\?", "a", false},
           Case{"\\\\", "\\", true},
           Case{"a\\b", "ab", true},
           Case{"temp*", "temperature", true},
           Case{"*.1", "net.1", true},
           Case{"*.1", "net.12", false},
           Case{"[a]", "a", false},
       }) {
    CAPTURE(c.glob);
    CAPTURE(c.name);
    CHECK(wire::glob_matches(c.glob, c.name) == c.want);
  }
}

TEST_CASE("selector: many stars do not take exponential time") {
  std::string glob, name(128, 'a');
  for (int i = 0; i < 60; ++i) glob += "*a";
  glob += "b";
  CHECK_FALSE(wire::glob_matches(glob, name));
  CHECK(wire::glob_matches(glob, name + "b"));
}

TEST_CASE("selector: text becomes device and sensor globs") {
  struct Case {
    const char* text;
    const char* device;
    const char* sensor;
    bool exact;
  };
  for (const Case& c : {
           Case{"kitchen", "kitchen", "*", false},
           Case{"kitchen/temp", "kitchen", "temp", true},
           Case{"*/*", "*", "*", false},
           Case{"*", "*", "*", false},
           Case{"k?/temp", "k?", "temp", false},
           Case{"a\\*/b\\?", "a\\*", "b\\?", true},
           Case{"0e:9c:00/co 2", "0e:9c:00", "co 2", true},
       }) {
    CAPTURE(c.text);
    const auto got = wire::parse_selector(c.text);
    REQUIRE(got.ok());
    CHECK(got->device == c.device);
    CHECK(got->sensor == c.sensor);
    CHECK(got->is_exact() == c.exact);
  }
}

TEST_CASE("selector: what names no series is refused") {
  for (const std::string& text :
       {std::string(), std::string("/"), std::string("a/"), std::string("/b"), std::string("a/b/c"),
        std::string("a\\"), std::string("a\\/b"), std::string("a/b\\"), std::string("a\xff"),
        std::string(wire::kSelectorMaxBytes + 1, 'a')}) {
    CAPTURE(text);
    CHECK(wire::parse_selector(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("selector: a series name is taken literally, and only that") {
  const auto got = wire::parse_series_name("a\\*b/c\\\\d");
  REQUIRE(got.ok());
  CHECK(got->device == "a*b");
  CHECK(got->sensor == "c\\d");
  for (const char* text : {"kitchen", "kitchen/*", "k?tchen/temp", "a/b\n", "", "a/"}) {
    CAPTURE(text);
    CHECK(wire::parse_series_name(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("selector: a series without a sensor is told what is missing") {
  CHECK(wire::parse_series_name("kitchen").status().message().starts_with(
      "\"kitchen\" names no sensor"));
  CHECK(wire::parse_series_name("kit*/t").status().message().find("not a pattern") !=
        std::string::npos);
}

TEST_CASE("selector: an escaped name selects itself alone") {
  for (const char* name : {"plain", "*", "a?b", "back\\slash", "\\*",
                           "K\xc3\xbc"
                           "che"}) {
    CAPTURE(name);
    const std::string glob = wire::escape_name(name);
    CHECK(wire::is_literal(glob));
    CHECK(wire::unescape_name(glob) == name);
    CHECK(wire::glob_matches(glob, name));
    CHECK_FALSE(wire::glob_matches(glob, std::string(name) + "x"));
  }
}

TEST_CASE("selector: globs overlap when one name can match both") {
  struct Case {
    const char *one, *other;
    bool want;
  };
  for (const Case& c : {Case{"*", "*", true},
                        Case{"a", "a", true},
                        Case{"a", "b", false},
                        Case{"a*", "*b", true},
                        Case{"a*", "b*", false},
                        Case{"*a", "*b", false},
                        Case{"a*c", "ab?", true},
                        Case{"a*c", "ab", false},
                        Case{"??", "a", false},
                        Case{"??", "a*", true},
                        Case{"*a*b*", "ba", false},
                        Case{"*a*", "b", false},
                        Case{"\\*", "a", false},
                        Case{"\\*", "*", true},
                        Case{"\\*", "\\?", false},
                        Case{"?", "\u00e9", true},
                        Case{"?", "\u00e9\u00e9", false},
                        Case{"", "*", true},
                        Case{"", "?", false},
                        Case{"", "", true}}) {
    CAPTURE(c.one);
    CAPTURE(c.other);
    CHECK(wire::globs_overlap(c.one, c.other) == c.want);
    CHECK(wire::globs_overlap(c.other, c.one) == c.want);
  }
}

TEST_CASE("selector: globs overlap exactly where a short name matches both") {
  // Globs of up to three parts: a shortest name that two of them match has at most six letters.
  std::vector<std::string> globs{""}, names{""};
  for (std::size_t from = 0, round = 0; round < 3; ++round) {
    const std::size_t end = globs.size();
    for (; from < end; ++from) {
      for (const char part : {'a', 'b', '*', '?'}) globs.push_back(globs[from] + part);
    }
  }
  for (std::size_t from = 0, round = 0; round < 6; ++round) {
    const std::size_t end = names.size();
    for (; from < end; ++from) {
      for (const char letter : {'a', 'b'}) names.push_back(names[from] + letter);
    }
  }
  for (const std::string& one : globs) {
    std::vector<const std::string*> matched;
    for (const std::string& name : names) {
      if (wire::glob_matches(one, name)) matched.push_back(&name);
    }
    for (const std::string& other : globs) {
      const bool both = std::any_of(matched.begin(), matched.end(), [&other](const std::string* n) {
        return wire::glob_matches(other, *n);
      });
      if (wire::globs_overlap(one, other) == both) continue;
      FAIL_CHECK(one << " and " << other);
    }
  }
}

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

using namespace edgecase;

TEST_CASE("query request: every aggregate has a name that leads back to it") {
  for (int i = 0; i <= static_cast<int>(wire::Aggregate::P99); ++i) {
    const auto aggregate = static_cast<wire::Aggregate>(i);
    const auto got = wire::parse_aggregate(wire::aggregate_name(aggregate));
    REQUIRE(got.ok());
    CHECK(*got == aggregate);
  }
  for (const char* name : {"", "avgs", "mean ", "p90", "meanmeanmeanmeanmeanmeanmeanmeanmean"}) {
    CAPTURE(name);
    CHECK(wire::parse_aggregate(name).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE(
    "query request: an aggregate is understood by its other names, and a near miss is named") {
  struct Case {
    const char* name;
    wire::Aggregate aggregate;
  };
  for (const Case& c :
       {Case{"avg", wire::Aggregate::Mean}, Case{"AVERAGE", wire::Aggregate::Mean},
        Case{"Mean", wire::Aggregate::Mean}, Case{"maximum", wire::Aggregate::Max},
        Case{"total", wire::Aggregate::Sum}, Case{"std", wire::Aggregate::Stddev},
        Case{"median", wire::Aggregate::P50}, Case{"latest", wire::Aggregate::Last}}) {
    CAPTURE(c.name);
    const auto got = wire::parse_aggregate(c.name);
    REQUIRE(got.ok());
    CHECK(*got == c.aggregate);
  }
  CHECK(wire::parse_aggregate("maen").status().message().find("did you mean mean?") !=
        std::string::npos);
  CHECK(wire::nearest_aggregate("stdev2") == "stddev");
  CHECK(wire::nearest_aggregate("95th") == "p95");
  CHECK(wire::nearest_aggregate("p90").empty());
  CHECK(wire::nearest_aggregate("xyzzy").empty());
}
