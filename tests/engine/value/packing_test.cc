#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "value/packing.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

// Lines such as a log has.
Bytes log_lines(SeededRandom& random, std::size_t size) {
  Bytes lines;
  while (lines.size() < size)
    lines += "level=info unit=pump" + std::to_string(random.below(8)) +
             " pressure=" + std::to_string(random.below(1000)) + " state=running\n";
  lines.resize(size);
  return lines;
}

Bytes noise(SeededRandom& random, std::size_t size) {
  Bytes bytes;
  while (bytes.size() < size) bytes.push_back(static_cast<char>(random.next()));
  return bytes;
}

TEST_CASE("what repeats is packed and comes back as it was") {
  SeededRandom random(20261128);
  Packer packer;
  Bytes room;
  for (const std::size_t size : {kPackedMinBytes, std::size_t{1000}, std::size_t{100'000},
                                 std::size_t{1} << 20, kUnpackedMaxBytes}) {
    CAPTURE(size);
    const Bytes lines = log_lines(random, size);
    const ByteView packed = packer.pack(lines);
    REQUIRE_FALSE(packed.empty());
    CHECK(packed.size() <= size - size / kPackingPaysShare);
    for (const std::size_t at : {0u, 4u}) {
      REQUIRE(unpack(packed, size, room, at));
      CHECK(ByteView(room).substr(at, size) == lines);
    }
  }
}

TEST_CASE("what saves less than an eighth, is short or too long stays as it is") {
  SeededRandom random(20261128);
  Packer packer;
  CHECK(packer.pack("").empty());
  CHECK(packer.pack(Bytes(kPackedMinBytes - 1, 'x')).empty());
  CHECK(packer.pack(Bytes(kUnpackedMaxBytes + 1, 'x')).empty());
  CHECK(packer.pack(noise(random, 100'000)).empty());
  // A tenth repeats, or a fifth.
  CHECK(packer.pack(noise(random, 9000) + Bytes(1000, 'x')).empty());
  CHECK_FALSE(packer.pack(noise(random, 8000) + Bytes(2000, 'x')).empty());
}

TEST_CASE("what does not repeat stands in packed bytes as it is") {
  SeededRandom random(20261128);
  Packer packer;
  const Bytes secret = noise(random, 16);
  const ByteView packed = packer.pack(log_lines(random, 2000) + secret + log_lines(random, 2000));
  REQUIRE_FALSE(packed.empty());
  CHECK(packed.find(secret) != ByteView::npos);
}

TEST_CASE("damaged packed bytes are refused or unpack within their bounds") {
  SeededRandom random(20261128);
  Packer packer;
  const Bytes lines = log_lines(random, 1500);
  const Bytes packed(packer.pack(lines));
  REQUIRE_FALSE(packed.empty());
  Bytes room;
  for (std::size_t size = 0; size < packed.size(); ++size)
    CHECK_FALSE(unpack(packed.substr(0, size), lines.size(), room));
  for (const std::uint64_t wrong :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{lines.size() - 1},
        std::uint64_t{lines.size() + 1}, std::uint64_t{kUnpackedMaxBytes},
        std::uint64_t{kUnpackedMaxBytes} + 1, UINT64_MAX})
    CHECK_FALSE(unpack(packed, wrong, room));
  // What a lie about the size may take is bounded by what there is.
  CHECK(room.size() <= 256 * packed.size());
  for (std::size_t byte = 0; byte < packed.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = packed;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      (void)unpack(flipped, lines.size(), room);
    }
  CHECK(room.size() <= 256 * packed.size());
}

TEST_CASE("where packing did not pay, samples are asked for seldom, until one pays") {
  SeededRandom random(20261128);
  Packer packer;
  const Bytes bad = noise(random, 3000);
  const Bytes good = log_lines(random, 3000);
  const auto passed_over = [&] {
    int passed = 0;
    while (!packer.wants_sample()) ++passed;
    return passed;
  };
  CHECK(passed_over() == 0);
  for (const int expected : {1, 3, 7, 15, 15}) {
    CHECK_FALSE(packer.pays(bad));
    CHECK(passed_over() == expected);
  }
  CHECK(packer.pays(good));
  CHECK(passed_over() == 0);
  CHECK_FALSE(packer.pays(bad));
  CHECK(passed_over() == 1);
}

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
