// What is told of JSON before a library parses it.
#include "wire/json_scan.h"

#include <doctest/doctest.h>

#include <string>

#include "wire/reading_json.h"

namespace edgecase::wire {

TEST_CASE("JSON: whether a line is a whole object is told by its braces outside of texts") {
  for (const char* whole : {"{}", "{\"a\":1}", " {\"a\":[1,{\"b\":2}]} ", R"({"a":"}"})",
                            R"({"a":"\"}"})", R"({"a":"\\"})"}) {
    CAPTURE(whole);
    CHECK(looks_like_whole_object(whole));
  }
  for (const char* cut :
       {"", " ", "{", "}", "{\"a\":1", "{\"a\":[1}", R"({"a":"})", R"({"a":"\"})", "{}}", "1"}) {
    CAPTURE(cut);
    CHECK_FALSE(looks_like_whole_object(cut));
  }
}

TEST_CASE("JSON: white space alone is blank") {
  CHECK(is_blank(""));
  CHECK(is_blank(" \t\r\n"));
  CHECK_FALSE(is_blank(" x "));
}

TEST_CASE(
    "JSON: a number too long to be kept several times over is refused, and its place is told") {
  const std::string number(kJsonNumberMaxBytes, '1');
  const std::string filler = R"({"text":")" + std::string(kJsonSliceBytes, '9') + R"(",)";
  CHECK(check_number_lengths("[" + number + "1]").ok());  // a document so small does no harm
  CHECK(check_number_lengths(filler + "\"n\":" + number + "}").ok());
  const Status refused = check_number_lengths(filler + "\"n\":" + number + "1}");
  CHECK(refused.code() == StatusCode::InvalidArgument);
  CHECK(refused.message().find("byte " + std::to_string(filler.size() + 4 + number.size() + 1)) !=
        std::string::npos);
  // Digits of texts are none, however long; a quote within a text does not end it.
  CHECK(check_number_lengths(filler + R"("a\"b":")" + number + number + "\"}").ok());
  // Numbers that stand apart are not added up.
  std::string many = filler + "\"list\":[";
  for (int i = 0; i < 100; ++i) many += std::string(100, '1') + ",";
  CHECK(check_number_lengths(many + "1]}").ok());
}

}  // namespace edgecase::wire
