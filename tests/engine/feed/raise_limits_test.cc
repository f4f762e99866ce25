#include "feed/raise_limits.h"

#include <doctest/doctest.h>

namespace edgecase::engine {
namespace {

using Sequences = std::vector<SequenceNumber>;

TEST_CASE("what a merge may raise ends at bounds, and at the newest of them for good") {
  struct Case {
    RaiseLimits limits;
    SequenceNumber max;
    Sequences levels;
  };
  const Case cases[] = {
      {RaiseLimits(), 50, {50}},            // nobody reads by positions
      {RaiseLimits::none_rises(), 50, {}},  // nobody has said where
      {RaiseLimits({100}), 50, {50}},       // all of it lies before
      {RaiseLimits({50}), 50, {50}},        // up to it
      {RaiseLimits({20}), 50, {20}},        // what lies behind keeps its own
      {RaiseLimits({40, 20, 20}), 50, {20, 40}},
      {RaiseLimits({20, 40, 70}), 50, {20, 40, 50}},
      {RaiseLimits({0}), 50, {0}},
  };
  for (const Case& each : cases) CHECK(each.limits.levels_up_to(each.max) == each.levels);
}

TEST_CASE("an entry takes the first level that is not below its own sequence") {
  const Sequences levels{20, 40};
  CHECK(raised(levels, 1) == 20);
  CHECK(raised(levels, 20) == 20);
  CHECK(raised(levels, 21) == 40);
  CHECK(raised(levels, 41) == 41);
  CHECK(raised({}, 7) == 7);
}

TEST_CASE("a group's entries rise to the largest of their interval") {
  struct Case {
    RaiseLimits limits;
    Sequences sequences;
    Sequences raised;
    bool alike;
  };
  const Case cases[] = {
      {RaiseLimits(), {3, 9, 5}, {9, 9, 9}, true},
      {RaiseLimits::none_rises(), {3, 9, 5}, {3, 9, 5}, false},
      {RaiseLimits::none_rises(), {4, 4}, {4, 4}, true},
      {RaiseLimits({9}), {3, 9, 5}, {9, 9, 9}, true},
      {RaiseLimits({4}), {3, 9, 5}, {3, 9, 5}, false},
      {RaiseLimits({5}), {3, 9, 5}, {5, 9, 5}, false},
      {RaiseLimits({4, 8, 20}), {1, 3, 9, 5, 7}, {3, 3, 9, 7, 7}, false},
      {RaiseLimits({4}), {}, {}, true},
  };
  for (const Case& each : cases) {
    Sequences sequences = each.sequences;
    CHECK(each.limits.raise(sequences) == each.alike);
    CHECK(sequences == each.raised);
  }
}

}  // namespace
}  // namespace edgecase::engine
