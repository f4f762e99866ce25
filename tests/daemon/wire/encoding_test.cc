#include "wire/encoding.h"

#include <doctest/doctest.h>

#include "edgecase/machine.h"

using namespace edgecase;

TEST_CASE("base64: the vectors of RFC 4648") {
  struct Case {
    const char* bytes;
    const char* text;
  };
  for (const Case& c : {Case{"", ""}, Case{"f", "Zg=="}, Case{"fo", "Zm8="}, Case{"foo", "Zm9v"},
                        Case{"foob", "Zm9vYg=="}, Case{"fooba", "Zm9vYmE="},
                        Case{"foobar", "Zm9vYmFy"}, Case{"\xff\xfe\xfb", "//77"}}) {
    CAPTURE(c.bytes);
    std::string text;
    wire::append_base64(c.bytes, text);
    CHECK(text == c.text);
    const auto back = wire::decode_base64(c.text);
    REQUIRE(back.ok());
    CHECK(*back == c.bytes);
  }
}

TEST_CASE("base64: any other text is refused") {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zm9v\n", "Zm 9", "Zm9-",
                           "Zm9_", "Zh==", "Zm9=", "Zg==Zg==", "Zm=v"}) {
    CAPTURE(text);
    CHECK(wire::decode_base64(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("base64: random bytes come back") {
  const std::uint64_t seed = 11;
  INFO("seed " << seed);
  SeededRandom random(seed);
  for (std::size_t size = 0; size < 300; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(random.next()));
    std::string text;
    wire::append_base64(bytes, text);
    const auto back = wire::decode_base64(text);
    REQUIRE(back.ok());
    CHECK(*back == bytes);
  }
}

TEST_CASE("percent-encoding: what stands for itself stays, and all bytes come back") {
  CHECK(wire::percent_encode("a b/\xc3\xbc*") == "a%20b%2F%C3%BC%2A");
  CHECK(wire::percent_encode("AZaz09-._~") == "AZaz09-._~");
  CHECK(wire::percent_decode("a%20b%2f%C3%bc") == "a b/\xc3\xbc");
  for (const char* odd : {"%", "100%", "%2", "%zz", "%2g"}) {
    CAPTURE(odd);
    CHECK(wire::percent_decode(odd) == odd);
  }
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  CHECK(wire::percent_decode(wire::percent_encode(all)) == all);
}

TEST_CASE("JSON: strings escape what JSON wants escaped, and no more") {
  std::string text;
  wire::append_json_string(std::string_view("a\"\\/\b\f\n\r\t\0\x1f\x7f\xc3\xbc", 14), text);
  CHECK(text == "\"a\\\"\\\\/\\u0008\\u000c\\n\\r\\t\\u0000\\u001f\x7f\xc3\xbc\"");
}
