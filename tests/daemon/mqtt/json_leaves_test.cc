#include "mqtt/json_leaves.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("json leaves: keeps order, pointers and the digits of numbers") {
  const auto leaves = mqtt::read_json_leaves(
      R"({"a":{"b":[1,{"c":"x"},[]]},"d/e~":1594598424.5023336,"f":null,"g":true,"h":{}})", {});
  REQUIRE(leaves.ok());
  REQUIRE(leaves->size() == 5);
  CHECK((*leaves)[0].pointer == "/a/b/0");
  CHECK((*leaves)[0].text == "1");
  CHECK((*leaves)[1].pointer == "/a/b/1/c");
  CHECK((*leaves)[1].text == "x");
  CHECK((*leaves)[2].pointer == "/d~1e~0");
  CHECK((*leaves)[2].text == "1594598424.5023336");
  CHECK((*leaves)[3].kind == mqtt::JsonKind::Null);
  CHECK((*leaves)[4].boolean);
  CHECK(mqtt::name_below("", "/a/b/1/c") == "a.b.1.c");
  CHECK(mqtt::name_below("", "/d~1e~0") == "d.e~");
  CHECK(mqtt::name_below("/a/b", "/a/b/1/c") == "1.c");
}

TEST_CASE("json leaves: refuses what is no JSON or over a limit, and says which") {
  struct Case {
    std::string text;
    const char* part;
  };
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  for (const Case& c :
       {Case{"", "not JSON"}, Case{"{", "not JSON"}, Case{"{\"a\":1}x", "not JSON"},
        Case{"{\"a\":\"\xff\"}", "not JSON"}, Case{"{\"a\":1,}", "not JSON"},
        Case{"{a:1}", "not JSON"}, Case{"on", "not JSON"}, Case{deep, "limits.json-depth = 32"},
        Case{"[1,2,3,4]", "limits.json-leaves = 3"}}) {
    CAPTURE(c.text);
    const auto leaves = mqtt::read_json_leaves(c.text, {32, 3});
    REQUIRE(!leaves.ok());
    CHECK(leaves.status().message().find(c.part) != std::string::npos);
  }
}
