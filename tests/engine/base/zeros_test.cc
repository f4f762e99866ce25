#include "base/zeros.h"

#include <doctest/doctest.h>

using namespace edgecase;
using namespace edgecase::engine;

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
