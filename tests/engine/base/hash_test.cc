#include "base/hash.h"

#include <doctest/doctest.h>

#include <bit>
#include <set>

#include "edgecase/random.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::engine;

TEST_CASE("hash64: the numbers that lie in tables never change") {
  CHECK(hash64("") == 896837291171260478ULL);
  CHECK(hash64("a") == 5620286872552094612ULL);
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
