#include "value/packing.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "edgecase/machine.h"

namespace edgecase::engine {
namespace {

using Column = std::vector<std::uint64_t>;

Column bits_of(const std::vector<double>& values) {
  Column column;
  for (const double value : values) column.push_back(std::bit_cast<std::uint64_t>(value));
  return column;
}

Bytes encoded(const Column& column) {
  Bytes out;
  append_doubles(out, column);
  return out;
}

void check_round_trip(const Column& column) {
  const Bytes bytes = encoded(column) + "behind";
  ByteView input = bytes;
  Column back(column.size());
  REQUIRE(take_doubles(input, back));
  CHECK(back == column);
  CHECK(input == "behind");
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("double columns come back bit for bit") {
  const std::vector<std::vector<double>> columns = {
      {},
      {0.0},
      {-0.0},
      {0.0, -0.0, 0.0},
      {21.5, 21.6, 21.4},
      {kInfinity, -kInfinity, 1.0},
      {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(),
       std::numeric_limits<double>::lowest(), std::numeric_limits<double>::min()},
      {9007199254740992.0, 9007199254740993.0, -9007199254740992.0, 1e15, 1e16, 1e22, 1e300},
      {0.1 + 0.2, 0.3, 1.0 / 3, 2.0 / 3},
      {1e-15, 1e-16, 1.5e-7, 123456789.123456},
      std::vector<double>(500, 3.25),
      std::vector<double>(500, std::nan("")),
  };
  for (const auto& column : columns) {
    CAPTURE(column.size());
    check_round_trip(bits_of(column));
  }
}

TEST_CASE("payloads of not-a-numbers are kept") {
  Column column = bits_of(std::vector<double>(100, 20.5));
  column[0] = 0x7ff8000000000001;
  column[50] = 0xfff0000000000123;
  column[99] = 0x7ff0deadbeef0001;
  check_round_trip(column);
}

TEST_CASE("a decimal column with a few strangers stays decimal") {
  std::vector<double> values;
  for (int i = 0; i < 640; ++i) values.push_back((200 + i % 7) / 10.0);
  values[0] = -0.0;
  values[100] = 1.0 / 3;
  values[639] = 1e300;
  const Column column = bits_of(values);
  check_round_trip(column);
  CHECK(encoded(column).size() < 640);
}

TEST_CASE("random doubles of every sort come back bit for bit") {
  constexpr std::uint64_t kSeed = 20261102;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  for (int sort = 0; sort < 7; ++sort)
    for (const unsigned count : {1u, 2u, 7u, 64u, 65u, 500u}) {
      CAPTURE(sort);
      CAPTURE(count);
      Column column(count);
      double walk = 20;
      for (std::uint64_t& bits : column) {
        const auto r = random.next();
        switch (sort) {
          case 0: bits = r; break;
          case 1:
            bits = std::bit_cast<std::uint64_t>(walk += static_cast<double>(r % 11) - 5);
            break;
          case 2:
            bits = std::bit_cast<std::uint64_t>(static_cast<double>(r % 100000) / 1000);
            break;
          case 3:
            bits = std::bit_cast<std::uint64_t>(
                static_cast<double>(static_cast<float>(r % 100000) / 7.0F));
            break;
          case 4: bits = std::bit_cast<std::uint64_t>(static_cast<double>(r % 16) / 3); break;
          case 5: bits = r % 20 == 0 ? r : std::bit_cast<std::uint64_t>(1.25); break;
          default:
            bits = std::bit_cast<std::uint64_t>(std::ldexp(1.0, static_cast<int>(r % 2000) - 1000));
        }
      }
      check_round_trip(column);
    }
}

TEST_CASE("doubles from a converter of few steps use a dictionary") {
  SeededRandom random(1);
  std::vector<double> values;
  for (int i = 0; i < 600; ++i)
    values.push_back(3.3 * static_cast<double>(random.below(16)) / 4095);
  CHECK(encoded(bits_of(values)).size() < 600 / 2 + 16 * 8 + 40);
}

TEST_CASE("as many distinct doubles as a dictionary takes, one fewer and more come back") {
  // With the second step they differ in ten bits alone, so that some hashes meet.
  for (const std::uint64_t step : {std::uint64_t{0x0123456789abcdef}, std::uint64_t{1} << 54}) {
    for (const std::uint64_t distinct : {1u, 2u, 255u, 256u, 257u, 1'000u}) {
      CAPTURE(distinct);
      std::vector<std::uint64_t> column;
      for (std::uint64_t i = 0; i < 3 * distinct; ++i)
        column.push_back(0x3ff123456789abcd + i * i % distinct * step);
      check_round_trip(column);
    }
  }
}

TEST_CASE("damaged double columns are refused or read within their bounds") {
  SeededRandom random(2);
  for (int sort = 0; sort < 4; ++sort) {
    Column column;
    for (int i = 0; i < 80; ++i) {
      const double third = static_cast<double>(random.below(1u << 30)) / 3;
      const double decimal = i % 20 == 3 ? third : static_cast<double>(random.below(100)) / 10;
      const double few = static_cast<double>(random.below(4)) / 3;
      column.push_back(sort == 0   ? random.next()
                       : sort == 1 ? std::bit_cast<std::uint64_t>(decimal)
                       : sort == 2 ? std::bit_cast<std::uint64_t>(few)
                                   : std::bit_cast<std::uint64_t>(third));
    }
    const Bytes bytes = encoded(column);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Bytes cut = bytes.substr(0, size);
      ByteView input = cut;
      Column back(column.size());
      CHECK_FALSE(take_doubles(input, back));
    }
    for (std::size_t byte = 0; byte < bytes.size(); ++byte)
      for (int bit = 0; bit < 8; ++bit) {
        Bytes flipped = bytes;
        flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
        ByteView input = flipped;
        Column back(column.size());
        (void)take_doubles(input, back);  // must only not go astray
      }
  }
}

}  // namespace
}  // namespace edgecase::engine
