#include "app/process_memory.h"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace edgecase::app {
namespace {

// Many pages of constants.
constexpr std::size_t kConstants = 64 << 10;
constexpr std::array<std::uint32_t, kConstants> make_constants() {
  std::array<std::uint32_t, kConstants> constants{};
  for (std::uint32_t i = 0; i < kConstants; ++i) constants[i] = i * 2654435761u;
  return constants;
}
constexpr std::array<std::uint32_t, kConstants> kTable = make_constants();

std::uint64_t wrong_constants() {
  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < kConstants; ++i) wrong += kTable[i] == i * 2654435761u ? 0u : 1u;
  return wrong;
}

}  // namespace

TEST_CASE("memory that is given back was not needed, whatever runs meanwhile") {
  static int variable = 7;
  std::vector<std::string> kept;
  for (int i = 0; i < 1'000; ++i) kept.push_back(std::string(100, 'k') + std::to_string(i));
  std::uint64_t wrong = 0;
  std::thread other([&wrong] {
    for (int round = 0; round < 50; ++round) wrong += wrong_constants();
  });
  for (int round = 0; round < 50; ++round) {
    give_memory_back();
    variable += 1;
  }
  other.join();
  CHECK(wrong == 0);
  CHECK(variable == 57);
  for (int i = 0; i < 1'000; ++i) {
    CHECK(kept[static_cast<std::size_t>(i)] == std::string(100, 'k') + std::to_string(i));
  }
}

}  // namespace edgecase::app
