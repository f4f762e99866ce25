#include "value/bytes_block.h"

#include <doctest/doctest.h>

#include <vector>

namespace edgecase::engine {
namespace {

Bytes encoded(const std::vector<Bytes>& strings) {
  const std::vector<ByteView> views(strings.begin(), strings.end());
  Bytes out;
  append_strings(out, views);
  return out;
}

TEST_CASE("string columns come back as they were") {
  for (const std::vector<Bytes>& strings : {std::vector<Bytes>{},
                                            {""},
                                            {"", "", ""},
                                            {"on", "off", "on", "off", "on", "off"},
                                            {Bytes("\0\1\xff", 3), "a", Bytes(5000, 'x')},
                                            std::vector<Bytes>(1000, Bytes("\3\1", 2))}) {
    CAPTURE(strings.size());
    const Bytes bytes = encoded(strings) + "behind";
    ByteView input = bytes;
    std::vector<ByteView> back;
    REQUIRE(take_strings(input, strings.size(), back));
    CHECK(std::vector<Bytes>(back.begin(), back.end()) == strings);
    CHECK(input == "behind");
  }
}

TEST_CASE("repeated strings stand once") {
  std::vector<Bytes> states;
  for (int i = 0; i < 800; ++i) states.push_back(i % 3 == 0 ? "heating" : "idle");
  CHECK(encoded(states).size() < 800 / 8 + 60);
}

TEST_CASE("damaged string columns are refused or read within their bounds") {
  for (const std::vector<Bytes>& strings :
       {std::vector<Bytes>{"one", "two", "three"}, {"on", "off", "on", "off", "on", "off", "on"}}) {
    const Bytes bytes = encoded(strings);
    std::vector<ByteView> back;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Bytes cut = bytes.substr(0, size);
      ByteView input = cut;
      CHECK_FALSE(take_strings(input, strings.size(), back));
    }
    for (std::size_t byte = 0; byte < bytes.size(); ++byte)
      for (int bit = 0; bit < 8; ++bit) {
        Bytes flipped = bytes;
        flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
        ByteView input = flipped;
        if (!take_strings(input, strings.size(), back)) continue;
        for (const ByteView value : back) CHECK(value.size() <= bytes.size());
      }
  }
}

}  // namespace
}  // namespace edgecase::engine
