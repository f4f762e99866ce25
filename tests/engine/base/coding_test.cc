#include "base/coding.h"

#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::engine;

TEST_CASE("coding: fixed integers are little-endian and come back") {
  Bytes bytes;
  append_fixed32(bytes, 0x04030201);
  append_fixed64(bytes, 0x0807060504030201);
  CHECK(bytes == Bytes("\x01\x02\x03\x04\x01\x02\x03\x04\x05\x06\x07\x08", 12));
  ByteView input = bytes;
  std::uint32_t narrow = 0;
  std::uint64_t wide = 0;
  REQUIRE(take_fixed32(input, narrow));
  REQUIRE(take_fixed64(input, wide));
  CHECK(narrow == 0x04030201);
  CHECK(wide == 0x0807060504030201);
  CHECK(input.empty());
}

TEST_CASE("coding: varints come back, and every cut of them is refused") {
  for (int shift = 0; shift < 64; ++shift) {
    for (std::uint64_t delta = 0; delta < 3; ++delta) {
      const std::uint64_t value = (std::uint64_t{1} << shift) - 1 + delta;
      CAPTURE(value);
      Bytes bytes;
      append_varint64(bytes, value);
      CHECK(bytes.size() == varint_bytes(value));
      ByteView input = bytes;
      std::uint64_t got = ~value;
      REQUIRE(take_varint64(input, got));
      CHECK(got == value);
      CHECK(input.empty());
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        ByteView cut = ByteView(bytes).substr(0, size);
        CHECK_FALSE(take_varint64(cut, got));
        CHECK(cut.size() == size);
      }
    }
  }
}

TEST_CASE("coding: refuses numbers past their width and longer encodings than needed") {
  std::uint32_t narrow = 7;
  std::uint64_t wide = 7;
  ByteView over32("\x80\x80\x80\x80\x10", 5);
  CHECK_FALSE(take_varint32(over32, narrow));
  CHECK(over32.size() == 5);
  ByteView over64("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
  CHECK_FALSE(take_varint64(over64, wide));
  ByteView eleven("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11);
  CHECK_FALSE(take_varint64(eleven, wide));
  ByteView overlong("\x81\x00", 2);
  CHECK_FALSE(take_varint64(overlong, wide));
  CHECK(narrow == 7);
  CHECK(wide == 7);
}

TEST_CASE("coding: zigzag keeps small magnitudes small and is exact at the ends") {
  CHECK(zigzag(0) == 0);
  CHECK(zigzag(-1) == 1);
  CHECK(zigzag(1) == 2);
  for (const std::int64_t value :
       {std::numeric_limits<std::int64_t>::min(), std::int64_t{-2}, std::int64_t{0},
        std::int64_t{2}, std::numeric_limits<std::int64_t>::max()}) {
    CHECK(unzigzag(zigzag(value)) == value);
  }
}

TEST_CASE("coding: length-prefixed bytes are bounded by the input and by the caller") {
  Bytes bytes;
  append_length_prefixed(bytes, "sensor");
  ByteView value;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteView cut = ByteView(bytes).substr(0, size);
    CHECK_FALSE(take_length_prefixed(cut, 100, value));
    CHECK(cut.size() == size);
  }
  ByteView input = bytes;
  CHECK_FALSE(take_length_prefixed(input, 5, value));
  REQUIRE(take_length_prefixed(input, 6, value));
  CHECK(value == "sensor");
  CHECK(input.empty());
}

TEST_CASE("coding: decoders accept any bytes without reading past them") {
  const std::uint64_t seed = test::test_seed(20);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 20'000; ++round) {
    // A heap copy of exactly the size, so that the address sanitizer sees one byte too many.
    Bytes bytes(random.below(14), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    const std::vector<char> exact(bytes.begin(), bytes.end());
    ByteView input(exact.data(), exact.size());
    std::uint64_t wide = 0;
    ByteView value;
    while (take_varint64(input, wide) || take_length_prefixed(input, 8, value)) {
    }
    CHECK(input.size() <= exact.size());
  }
}

TEST_CASE("zeros: the first byte that is none is found wherever it lies") {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{600}}) {
    for (std::size_t at = 0; at < size; ++at) {
      Bytes bytes(size, '\0');
      bytes[at] = static_cast<char>(0x80);
      bytes.back() = 1;
      CHECK(first_nonzero(bytes) == at);
      CHECK_FALSE(all_zero(bytes));
    }
  }
}

TEST_CASE("zeros: where there is nothing else, that is at the end") {
  for (std::size_t size = 0; size < 600; ++size) {
    const Bytes bytes(size, '\0');
    CHECK(first_nonzero(bytes) == size);
    CHECK(all_zero(bytes));
  }
}
