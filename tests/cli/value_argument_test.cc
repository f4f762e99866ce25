#include "command_options.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "target_file.h"

namespace edgecase::cli {
namespace {

TEST_CASE("the type of a value is guessed from its text") {
  struct Case {
    const char* text;
    wire::ValueType type;
  };
  using enum wire::ValueType;
  for (const Case& c :
       {Case{"21.5", Float64}, Case{"-3", Float64}, Case{"+3", Float64}, Case{"1e3", Float64},
        Case{"true", Bool}, Case{"false", Bool}, Case{"True", Text}, Case{"1 ", Float64},
        Case{"0x10", Text}, Case{"on", Text}}) {
    CAPTURE(c.text);
    const auto value = parse_value(c.text, "");
    REQUIRE(value.ok());
    REQUIRE(value->has_value());
    CHECK((*value)->type == c.type);
  }
  for (const char* text : {"", "nan", "-inf", "NULL"}) {
    CAPTURE(text);
    for (const char* type : {"", "float", "int", "bool"})
      CHECK(!parse_value(text, type)->has_value());
    CHECK((*parse_value(text, "text"))->text == text);
  }
}

TEST_CASE("a declared type takes what fits and nothing else") {
  const auto value_of = [](const char* text, const char* type) {
    return **parse_value(text, type);
  };
  CHECK(value_of("-9223372036854775808", "int").int64 == std::numeric_limits<std::int64_t>::min());
  CHECK(value_of("9223372036854775807.00", "int").int64 ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(value_of("+7", "int").int64 == 7);
  CHECK(value_of("5.0", "int").int64 == 5);
  CHECK(value_of(" -3. ", "int").int64 == -3);
  CHECK(value_of("7", "float").float64 == 7.0);
  CHECK(value_of("7", "text").text == "7");
  CHECK(value_of("\xff", "bytes").text == "\xff");
  struct Case {
    const char* text;
    const char* type;
  };
  for (const Case& c :
       {Case{"1.5", "int"}, Case{"9223372036854775808", "int"}, Case{"x", "float"},
        Case{"1e3", "int"}, Case{".0", "int"}, Case{"TRUE", "bool"}, Case{"1,5", ""},
        Case{"1,234.5", ""}, Case{"1e400", ""}, Case{"1e999", "float"}, Case{"yes", "bool"},
        Case{"1", "bool"}, Case{"\xff", "text"}, Case{"\xff", ""}, Case{"1", "number"}}) {
    CAPTURE(c.text);
    CAPTURE(c.type);
    CHECK(parse_value(c.text, c.type).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("numbers and bools as spreadsheets write them") {
  const ValueSpelling comma{',', true};
  CHECK((*parse_value("21,5", "", comma))->float64 == 21.5);
  CHECK((*parse_value("-3,0", "int", comma))->int64 == -3);
  CHECK((*parse_value("TRUE", "", comma))->boolean);
  CHECK(!(*parse_value("False", "bool", comma))->boolean);
  // A point is no decimal mark then, and whether it parts thousands nobody can tell.
  for (const char* text : {"21.5", "1.234,5", "1.234.567"}) {
    CAPTURE(text);
    CHECK(!parse_value(text, "", comma).ok());
    CHECK(!parse_value(text, "float", comma).ok());
  }
  CHECK((*parse_value("192.168.1.1", "", comma))->type == wire::ValueType::Text);
}

TEST_CASE("a reading becomes the JSON that the daemon takes") {
  CHECK(reading_json("default", "a\"b", "c", "", wire::Value::of_float64(21.5)) ==
        R"({"namespace":"default","device":"a\"b","sensor":"c","value":21.5,"type":"float"})");
  CHECK(reading_json("n", "a", "b", "2025-11-20T14:00:00Z", wire::Value::of_int64(-1)) ==
        R"({"namespace":"n","device":"a","sensor":"b","time":"2025-11-20T14:00:00Z",)"
        R"("value":-1,"type":"int"})");
  CHECK(reading_json("n", "a", "b", "", wire::Value::of_bool(true)) ==
        R"({"namespace":"n","device":"a","sensor":"b","value":true,"type":"bool"})");
  CHECK(reading_json("n", "a", "b", "", wire::Value::of_text("x\ny")) ==
        R"({"namespace":"n","device":"a","sensor":"b","value":"x\ny","type":"text"})");
}

TEST_CASE("content types follow the file's name") {
  CHECK(content_type_of_file("a/b.jpg") == "image/jpeg");
  CHECK(content_type_of_file("x.json") == "application/json");
  CHECK(content_type_of_file("x") == "application/octet-stream");
  CHECK(content_type_of_file("-") == "application/octet-stream");
}

TEST_CASE("names become file names that lead nowhere else") {
  CHECK(file_name_of("kitchen") == "kitchen");
  CHECK(file_name_of("..") == "%2E.");
  CHECK(file_name_of(".hidden") == "%2Ehidden");
  CHECK(file_name_of("50%") == "50%25");
  CHECK(file_name_of("a:b c") == "a:b c");
  // However long once escaped: short enough for a file, and two never the same.
  const std::string percents = file_name_of(std::string(86, '%'));
  CHECK(percents.size() <= 200);
  CHECK(percents != file_name_of(std::string(87, '%')));
  CHECK(file_name_of(std::string(200, 'x')) == std::string(200, 'x'));
  std::string umlauts;
  for (int i = 0; i < 512; ++i) umlauts += "\xc3\xa4";
  for (const std::string& name : {umlauts, "x" + umlauts}) {
    const std::string cut = file_name_of(name);
    CHECK(cut.size() <= 200);
    const std::size_t end = cut.rfind('~');
    REQUIRE(end != std::string::npos);
    CHECK((end - name.size() % 2) % 2 == 0);  // whole characters
  }
}

}  // namespace
}  // namespace edgecase::cli
