// How much of some runs overlaps, told by their records.
#include "compaction/survey.h"

#include "engine/compaction/slices_fixture.h"

namespace edgecase::engine {
namespace {

struct SurveyedStore : SlicesFixture {
  SurveyedStore() : SlicesFixture(11) {}

  // A group for each of these pairs of keys, each pair a run.
  void add_runs(const std::vector<std::vector<std::uint64_t>>& runs) {
    for (const auto& keys : runs) add_run_of(keys);
  }
  std::vector<MergeInput> inputs() const {
    std::vector<MergeInput> all;
    for (const Run& run : state.version->trees.at(1)) all.push_back(run.tables);
    return all;
  }
  Overlap overlap(std::uint64_t turns) {
    Survey survey(*cache, inputs());
    for (int steps = 0; steps < 1000; ++steps) {
      const auto done = survey.step(turns);
      REQUIRE(done.ok());
      if (*done) return survey.overlap();
    }
    FAIL("it does not end");
    return {};
  }
};

}  // namespace

TEST_CASE("a survey tells depth and bytes of what overlaps") {
  struct Case {
    const char* what;
    std::vector<std::vector<std::uint64_t>> runs;
    std::size_t depth;
    std::size_t overlapping_items;
  };
  const Case cases[] = {
      {"one run", {{1, 9}}, 1, 0},
      {"side by side", {{1, 9}, {10, 19}, {20, 29}}, 1, 0},
      {"one end on the other's beginning", {{1, 9}, {9, 19}}, 2, 2},
      {"two of three", {{1, 9}, {5, 19}, {20, 29}}, 2, 2},
      {"a chain", {{1, 9}, {5, 19}, {15, 29}}, 2, 3},
      {"one within all", {{1, 90}, {2, 80}, {3, 70}}, 3, 3},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    SurveyedStore store;
    store.add_runs(each.runs);
    const Overlap found = store.overlap(UINT64_MAX);
    CHECK(found.items == each.runs.size());
    CHECK(found.depth == each.depth);
    CHECK(found.overlapping_bytes <= found.item_bytes);
    // All groups are alike but for a few bytes.
    const std::uint64_t item = found.item_bytes / found.items;
    CHECK((found.overlapping_bytes + item / 2) / item == each.overlapping_items);
  }
}

TEST_CASE("a survey in steps finds what one at once does") {
  SurveyedStore store;
  for (int run = 0; run < 4; ++run) store.add_run(2'000, 400, UINT64_MAX);
  const Overlap at_once = store.overlap(UINT64_MAX);
  const Overlap in_steps = store.overlap(7);
  CHECK(at_once.items > 28);
  CHECK(in_steps.items == at_once.items);
  CHECK(in_steps.item_bytes == at_once.item_bytes);
  CHECK(in_steps.overlapping_bytes == at_once.overlapping_bytes);
  CHECK(in_steps.depth == at_once.depth);
}

}  // namespace edgecase::engine
