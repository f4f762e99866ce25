#include "wire/names.h"

#include <doctest/doctest.h>

#include <array>

namespace edgecase::wire {
namespace {

TEST_CASE("nearest_word finds what was meant and nothing far-fetched") {
  constexpr std::array<std::string_view, 4> kKnown = {"query", "export", "serve", "a"};
  CHECK(nearest_word("qurey", kKnown) == "query");
  CHECK(nearest_word("exprt", kKnown) == "export");
  CHECK(nearest_word("ser", kKnown) == "serve");
  CHECK(nearest_word("banana", kKnown) == "");
  CHECK(nearest_word("x", kKnown) == "");
  CHECK(nearest_word("", kKnown) == "");
  CHECK(nearest_word(std::string_view("q"), kKnown) == "");
}

}  // namespace
}  // namespace edgecase::wire
