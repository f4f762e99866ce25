#include "value/bytes_block.h"

#include <doctest/doctest.h>

#include <vector>

#include "value/group_format.h"
#include "value/packing.h"

namespace edgecase::engine {
namespace {

Bytes encoded(const std::vector<Bytes>& strings, Packer* packer = nullptr) {
  const std::vector<ByteView> views(strings.begin(), strings.end());
  Bytes out;
  append_strings(out, views, packer);
  return out;
}

// Messages of which hardly one is said twice.
std::vector<Bytes> messages() {
  std::vector<Bytes> texts;
  for (int i = 0; i < 60; ++i)
    texts.push_back("pump " + std::to_string(i * i % 97) + ": pressure below limit");
  return texts;
}

TEST_CASE("string columns come back as they were") {
  for (const std::vector<Bytes>& strings : {std::vector<Bytes>{},
                                            {""},
                                            {"", "", ""},
                                            {"on", "off", "on", "off", "on", "off"},
                                            {Bytes("\0\1\xff", 3), "a", Bytes(5000, 'x')},
                                            std::vector<Bytes>(1000, Bytes("\3\1", 2)),
                                            messages()}) {
    CAPTURE(strings.size());
    Packer packer;
    for (Packer* const packs : {static_cast<Packer*>(nullptr), &packer}) {
      const Bytes bytes = encoded(strings, packs) + "behind";
      ByteView input = bytes;
      std::vector<ByteView> back;
      Bytes room;
      REQUIRE(take_strings(input, strings.size(), back, room));
      CHECK(std::vector<Bytes>(back.begin(), back.end()) == strings);
      CHECK(input == "behind");
    }
  }
}

TEST_CASE("repeated strings stand once") {
  std::vector<Bytes> states;
  for (int i = 0; i < 800; ++i) states.push_back(i % 3 == 0 ? "heating" : "idle");
  CHECK(encoded(states).size() < 800 / 8 + 60);
}

TEST_CASE("texts that are alike take less than half, and only where they are packed") {
  Packer packer;
  const std::size_t raw = encoded(messages()).size();
  const Bytes packed = encoded(messages(), &packer);
  CHECK(packed.size() < raw / 2);
  CHECK(packed.front() == static_cast<char>(kBytesPacked));
}

TEST_CASE("damaged string columns are refused or read within their bounds") {
  for (const std::vector<Bytes>& strings : {std::vector<Bytes>{"one", "two", "three"},
                                            {"on", "off", "on", "off", "on", "off", "on"},
                                            messages()}) {
    Packer packer;
    const Bytes bytes = encoded(strings, &packer);
    std::vector<ByteView> back;
    Bytes room;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Bytes cut = bytes.substr(0, size);
      ByteView input = cut;
      CHECK_FALSE(take_strings(input, strings.size(), back, room));
    }
    for (std::size_t byte = 0; byte < bytes.size(); ++byte)
      for (int bit = 0; bit < 8; ++bit) {
        Bytes flipped = bytes;
        flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
        ByteView input = flipped;
        if (!take_strings(input, strings.size(), back, room)) continue;
        for (const ByteView value : back) CHECK(value.size() <= 256 * bytes.size());
      }
  }
}

}  // namespace
}  // namespace edgecase::engine
