// The seed of a random test: what EDGECASE_TEST_SEED says, else the test's own.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace edgecase::test {

inline std::uint64_t test_seed(std::uint64_t usual) {
  const char* given = std::getenv("EDGECASE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
}

}  // namespace edgecase::test
