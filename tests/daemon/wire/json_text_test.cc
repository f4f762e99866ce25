// Long strings of JSON documents, which the library does not get to see.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "support/test_seed.h"
#include "support/test_share.h"
#include "wire/json_text.h"
#include "wire/reading_json.h"

using namespace edgecase;

namespace {

constexpr std::size_t kLongTextBytes = wire::kLongJsonStringBytes;

// Each is a whole of its own.
const std::vector<std::string> kEscapedParts = {"x",
                                                "plain text",
                                                R"(\n)",
                                                R"(\\)",
                                                R"(\")",
                                                R"(\/)",
                                                R"(\u0041)",
                                                R"(\ud83d\ude00)",
                                                R"(\uD7FF)",
                                                "\xc3\xa9",
                                                "\xf0\x9f\x98\x80",
                                                "{}[],:"};

std::string escaped_text(SeededRandom& random, std::size_t size) {
  std::string text;
  while (text.size() < size) text += kEscapedParts[random.below(kEscapedParts.size())];
  return text;
}

struct DecodedText {
  Status status;
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
};

DecodedText decode_text(std::string_view body) {
  DecodedText decoded;
  decoded.status = wire::decode_readings_json(body, {}, decoded.batch, decoded.outcome);
  return decoded;
}

std::string reading_with(const std::string& members) {
  return R"({"device":"d","sensor":"s",)" + members + "}";
}

}  // namespace

TEST_CASE("json text: what long strings stand for is what the library says") {
  const std::uint64_t seed = test::test_seed(3);
  CAPTURE(seed);
  SeededRandom random(seed);
  const std::uint64_t rounds = std::max<std::uint64_t>(test::share_of(60), 5);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::string body = "[";
    std::vector<std::string> wanted;
    for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
      const std::size_t size =
          random.below(3) == 0 ? random.below(200) : kLongTextBytes - 50 + random.below(100'000);
      const std::string escaped = escaped_text(random, size);
      const std::string space(random.below(3), ' ');
      body += reading_with("\"value\"" + space + ":" + space + '"' + escaped + '"');
      body += left == 1 ? "]" : ",";
      wanted.push_back(nlohmann::json::parse('"' + escaped + '"').get<std::string>());
    }
    const auto got = decode_text(body);
    REQUIRE(got.status.ok());
    REQUIRE(got.outcome.bad == 0);
    REQUIRE(got.batch.readings.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(got.batch.readings[i].value.text == wanted[i]);
  }
}

TEST_CASE("json text: a long string without escapes is not copied") {
  const std::string body = reading_with("\"value\":\"" + std::string(kLongTextBytes, 'x') + '"');
  const auto got = decode_text(body);
  REQUIRE(got.outcome.good == 1);
  const char* const text = got.batch.readings[0].value.text.data();
  CHECK(text > body.data());
  CHECK(text < body.data() + body.size());
}

TEST_CASE("json text: bytes in base64, with and without escapes") {
  std::string encoded, escaped;
  for (std::size_t i = 0; i < kLongTextBytes; i += 4) {
    encoded += "ab+/";
    escaped += R"(ab+\/)";
  }
  for (const std::string& text : {encoded, escaped}) {
    const auto got = decode_text(reading_with(R"("type":"bytes","value":")" + text + '"'));
    REQUIRE(got.outcome.good == 1);
    const std::string_view bytes = got.batch.readings[0].value.text;
    REQUIRE(bytes.size() == kLongTextBytes / 4 * 3);
    CHECK(bytes.substr(bytes.size() - 3) == "\x69\xbf\xbf");
  }
}

TEST_CASE("json text: what is no string spoils the document") {
  const std::string filler(kLongTextBytes, 'x');
  for (const std::string& wrong :
       {std::string(R"(\q)"), std::string(R"(\ud83d)"), std::string("\n"), std::string("\xff"),
        std::string(R"(\u12g4)"), std::string(R"(\ude00)"), std::string("\xc3")}) {
    for (const std::string& text : {wrong + filler, filler + wrong, filler + wrong + filler}) {
      CAPTURE(wrong);
      const auto got = decode_text("[" + reading_with("\"value\":\"" + text + '"') + "]");
      CHECK(got.status.code() == StatusCode::InvalidArgument);
      CHECK(got.status.message().find("not JSON at byte") != std::string_view::npos);
      CHECK(got.batch.readings.empty());
    }
  }
}

TEST_CASE("json text: errors name their place in the document") {
  const std::string before =
      "[" + reading_with("\"value\":\"" + std::string(kLongTextBytes, 'x') + '"');
  for (const std::string& between : {std::string(","), ',' + before.substr(1) + ','}) {
    const std::string body = before + between + "}]";
    const auto got = decode_text(body);
    CHECK(got.status.message().find("not JSON at byte " + std::to_string(body.size() - 1) + ":") !=
          std::string_view::npos);
  }
}

TEST_CASE("json text: nothing but a value may be long") {
  const std::string text(kLongTextBytes, 'x');
  for (const std::string& member :
       {R"("type":")" + text + R"(","value":1)", R"("time":")" + text + R"(","value":1)",
        R"("type":"bytes","content_type":")" + text + R"(","value":"")",
        '"' + text + R"(":1,"value":1)"}) {
    const auto got = decode_text(reading_with(member));
    CHECK(got.status.ok());
    CHECK(got.outcome.bad == 1);
  }
  const auto named = decode_text(R"({"sensor":"s","value":1,"device":")" + text + "\"}");
  CHECK(named.outcome.bad == 1);
  // Between members of the same name the last is not taken for the first.
  const auto twice = decode_text(reading_with(R"("value":")" + text + R"(","value":1)"));
  CHECK(twice.outcome.bad == 1);
}

// What is told of JSON before a library parses it.

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
