#include "base/hash.h"

#include <bit>
#include <set>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::engine;

TEST_CASE("hash64: the numbers that lie in tables never change") {
  CHECK(hash64("") == 896837291171260478ULL);
  CHECK(hash64("a") == 5620286872552094612ULL);
  CHECK(hash64("8 bytes!") == 6943632757982545019ULL);
  CHECK(hash64("kitchen/temp") == 9566136837851818682ULL);
  CHECK(hash64("a key of more than sixteen bytes") == 13629812269350589582ULL);
  CHECK(hash64("kitchen/temp", 1) == 15960353341267757334ULL);
}

TEST_CASE("hash64: no two of many alike keys share a hash, zero bytes included") {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < 100; ++size) seen.insert(hash64(Bytes(size, '\0')));
  for (int i = 0; i < 100'000; ++i) seen.insert(hash64("sensor" + std::to_string(i)));
  CHECK(seen.size() == 100'100);
}

TEST_CASE("hash64: one flipped bit changes about half of the result") {
  const std::uint64_t seed = test::test_seed(8);
  CAPTURE(seed);
  SeededRandom random(seed);
  std::uint64_t changed = 0;
  std::uint64_t samples = 0;
  for (std::size_t size = 1; size < 48; ++size) {
    Bytes bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    for (std::size_t bit = 0; bit < size * 8; ++bit, ++samples) {
      Bytes other = bytes;
      other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
      changed += static_cast<std::uint64_t>(std::popcount(hash64(bytes) ^ hash64(other)));
    }
  }
  const double mean = static_cast<double>(changed) / static_cast<double>(samples);
  CHECK(mean > 31.5);
  CHECK(mean < 32.5);
}

namespace {

// By the definition, a bit at a time: what both fast ways are compared with.
std::uint32_t by_definition(ByteView bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

}  // namespace

TEST_CASE("crc32c: known answers") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(Bytes(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(Bytes(32, '\xff')) == 0x62a8ab43);
}

TEST_CASE("crc32c: definition, tables and instruction agree at every length and alignment") {
  const std::uint64_t seed = test::test_seed(3);
  CAPTURE(seed);
  SeededRandom random(seed);
  Bytes bytes(900, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t size = 0; size + start <= bytes.size(); ++size) {
      const ByteView part = ByteView(bytes).substr(start, size);
      const std::uint32_t want = by_definition(part);
      REQUIRE(crc32c_extend_software(0, part) == want);
      if (crc32c_has_hardware()) REQUIRE(crc32c_extend_hardware(0, part) == want);
      if (crc32c_has_folding() && size >= kCrcFoldingMinBytes)
        REQUIRE(crc32c_extend_folding(0, part) == want);
      REQUIRE(crc32c(part) == want);
    }
  }
}

TEST_CASE("crc32c: a long piece behind another has the checksum of both") {
  const std::uint64_t seed = test::test_seed(4);
  CAPTURE(seed);
  SeededRandom random(seed);
  Bytes bytes(70'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  const ByteView view = bytes;
  const std::uint32_t want = by_definition(view);
  for (const std::size_t cut : {1u, 16u, 255u, 4096u, 65'000u}) {
    CAPTURE(cut);
    CHECK(crc32c_extend(crc32c(view.substr(0, cut)), view.substr(cut)) == want);
  }
}

TEST_CASE("crc32c: extending piece by piece is the checksum of the whole") {
  const Bytes bytes = "a reading is (namespace, device, sensor, time, value)";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const ByteView view = bytes;
    CHECK(crc32c_extend(crc32c(view.substr(0, cut)), view.substr(cut)) == crc32c(view));
    CHECK(crc32c_extend_software(crc32c(view.substr(0, cut)), view.substr(cut)) == crc32c(view));
  }
}
