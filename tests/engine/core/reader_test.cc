#include "core/reader.h"

#include <doctest/doctest.h>

#include "engine/core/engine_fixture.h"

namespace edgecase::engine {

TEST_CASE("held snapshots: told when those of before have gone, whatever came later") {
  test::EngineFixture store;
  REQUIRE(store.open().ok());
  CHECK(store.engine->held_snapshots().expired());
  auto first = store.engine->snapshot();
  const auto of_first = store.engine->held_snapshots();
  auto second = store.engine->snapshot();
  const auto of_both = store.engine->held_snapshots();
  const auto later = store.engine->snapshot();
  CHECK_FALSE(of_first.expired());
  SUBCASE("the older goes first") {
    first.reset();
    CHECK(of_first.expired());
    CHECK_FALSE(of_both.expired());
    second.reset();
    CHECK(of_both.expired());
  }
  SUBCASE("the younger goes first") {
    second.reset();
    CHECK_FALSE(of_first.expired());
    CHECK_FALSE(of_both.expired());
    first.reset();
    CHECK(of_first.expired());
    CHECK(of_both.expired());
  }
}

}  // namespace edgecase::engine
