// The share of a long test that runs. Where every step costs ten times as much, under a sanitizer
// or an emulator, the preset says in EDGECASE_TEST_SHARE, in percent, that a part will do; the
// plain build runs the whole, and so does every build with EDGECASE_TEST_LONG.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace edgecase::test {

inline std::uint64_t test_share_percent() {
  const char* given = std::getenv("EDGECASE_TEST_SHARE");
  if (given == nullptr || std::getenv("EDGECASE_TEST_LONG") != nullptr) return 100;
  return std::clamp<std::uint64_t>(std::strtoull(given, nullptr, 10), 1, 100);
}

// For "that many times": at least once.
inline std::uint64_t share_of(std::uint64_t whole) {
  return std::max<std::uint64_t>(1, whole * test_share_percent() / 100);
}

// How many seeds of something that is the more thorough the more there are: with a seed of its own
// (EDGECASE_TEST_SEED) that one alone.
inline std::uint64_t seeds_of(std::uint64_t whole, std::uint64_t least = 20) {
  if (std::getenv("EDGECASE_TEST_SEED") != nullptr) return 1;
  return std::max(whole * test_share_percent() / 100, least);
}

// For loops over everything there is: how far to go on, 1 where the whole runs. Loops within loops
// should begin at different places, so that together they still come past each.
inline std::uint64_t share_step() {
  return 100 / test_share_percent();
}

}  // namespace edgecase::test
