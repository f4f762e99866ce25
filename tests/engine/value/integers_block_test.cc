#include "value/packing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/coding.h"
#include "edgecase/machine.h"

namespace edgecase::engine {
namespace {

using Column = std::vector<std::uint64_t>;

Bytes encoded_integers(const Column& column) {
  Bytes out;
  append_integers(out, column);
  return out;
}

void check_integers(const Column& column) {
  const Bytes bytes = encoded_integers(column);
  CHECK(bytes.size() == integers_bytes(column));
  // With and without bytes behind it: packed columns look ahead.
  for (const unsigned behind : {0u, 3u, 40u}) {
    const Bytes padded = bytes + Bytes(behind, '\xff');
    ByteView input = padded;
    Column back(column.size());
    REQUIRE(take_integers(input, back));
    CHECK(back == column);
    CHECK(input.size() == behind);
    input = padded;
    const auto one = take_one_integer(input, column.size());
    const bool is_one = column.size() > 1 && std::count(column.begin(), column.end(), column[0]) ==
                                                 static_cast<std::ptrdiff_t>(column.size());
    REQUIRE(one.has_value() == is_one);
    if (is_one) CHECK(*one == column[0]);
    CHECK(input.size() == (is_one ? behind : padded.size()));
  }
}

std::uint64_t u(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

TEST_CASE("integer columns come back as they were") {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const Column& column :
       {Column{}, Column{0}, Column{u(-1)}, Column{u(kMin)}, Column{u(kMax)},
        Column{u(kMin), u(kMax), u(kMin)}, Column{u(kMax), u(kMin)}, Column{0, u(kMin), 0, u(kMax)},
        Column(1000, 7), Column{1, 1, 1, 2, 2, 2, 2, 9, 9, 9},
        Column{UINT64_MAX, 0, UINT64_MAX / 2, UINT64_MAX / 2 + 1}}) {
    CAPTURE(column.size());
    check_integers(column);
  }
}

TEST_CASE("integer columns of every width and length come back as they were") {
  constexpr std::uint64_t kSeed = 20261101;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  for (unsigned width = 0; width <= 64; ++width)
    for (const unsigned count : {1u, 2u, 63u, 64u, 65u, 129u, 700u}) {
      CAPTURE(width);
      CAPTURE(count);
      Column column(count);
      for (std::uint64_t& value : column) value = width == 0 ? 5 : random.next() >> (64 - width);
      check_integers(column);
      std::uint64_t sum = 0;
      for (std::uint64_t& value : column) value = sum += value;
      check_integers(column);
    }
}

TEST_CASE("regular integer columns take next to nothing") {
  Column same(1000, 123456);
  CHECK(encoded_integers(same).size() <= 6);
  Column stride;
  for (std::uint64_t i = 0; i < 1000; ++i) stride.push_back(i * 1'000'000'000);
  CHECK(encoded_integers(stride).size() <= 10);
  Column steps;
  for (std::uint64_t i = 0; i < 1000; ++i) steps.push_back(i / 250);
  CHECK(encoded_integers(steps).size() <= 24);
  Column small;
  for (std::uint64_t i = 0; i < 640; ++i) small.push_back(1'000'000 + i * i % 15);
  CHECK(encoded_integers(small).size() <= 640 / 2 + 20);
}

TEST_CASE("damaged integer columns are refused or read within their bounds") {
  Column column;
  for (std::uint64_t i = 0; i < 100; ++i) column.push_back(i * i * 77 % 1000);
  const Bytes bytes = encoded_integers(column);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut = bytes.substr(0, size);
    ByteView input = cut;
    Column back(column.size());
    CHECK_FALSE(take_integers(input, back));
  }
  for (std::size_t byte = 0; byte < bytes.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = bytes;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      ByteView input = flipped;
      Column back(column.size());
      (void)take_integers(input, back);  // must only not go astray
    }
  const Bytes constant = encoded_integers(Column(9, 123'456));
  for (std::size_t size = 0; size < constant.size(); ++size) {
    const Bytes cut = constant.substr(0, size);
    ByteView input = cut;
    CHECK_FALSE(take_one_integer(input, 9).has_value());
    CHECK(input.size() == size);
  }
  for (const char* bad : {"\x20\x00", "\x04\x00\x00", "\x03\x00\x39", "\x01\x00\x05\x00"}) {
    ByteView input(bad, 4);
    Column back(3);
    CHECK_FALSE(take_integers(input, back));
  }
}

}  // namespace
}  // namespace edgecase::engine
