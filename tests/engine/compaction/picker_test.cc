#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "compaction/merge_plan.h"
#include "edgecase/machine.h"
#include "engine/compaction/slices_fixture.h"
#include "support/test_seed.h"

namespace edgecase::engine {

// What is done with level 0 and with runs alike in size, and when it is worth a survey to know.

namespace {

constexpr std::uint64_t kWindowBytes = 64u << 20;

Window window_of(std::size_t runs) {
  Window window;
  window.namespace_id = 1;
  for (std::size_t i = 1; i <= runs; ++i) window.runs.push_back(i);
  window.item_bytes = kWindowBytes;
  window.runs_in_tree = runs;
  return window;
}

Overlap overlap_of(std::size_t depth, std::uint64_t overlapping_bytes) {
  Overlap overlap;
  overlap.item_bytes = kWindowBytes;
  overlap.depth = depth;
  overlap.overlapping_bytes = overlapping_bytes;
  return overlap;
}

}  // namespace

TEST_CASE("level 0 is in pieces where it holds few bytes of each namespace, and few entries") {
  Version version;
  for (const NamespaceId id : {1u, 2u}) {
    ValueFileMetadata file;
    file.number = id;
    file.namespace_id = id;
    version.value_files.emplace(file.number, file);
  }
  const auto is_in_pieces_with = [&](std::uint64_t entries, std::uint64_t bytes) {
    const auto table = std::make_shared<TableMetadata>();
    table->entry_count = entries;
    table->value_files = {{1, bytes / 2}, {2, bytes / 2}};
    MergePlan plan;
    plan.groups = {{table}};
    return is_in_pieces(version, plan);
  };
  const std::uint64_t entries = 2 * kLevel0PieceEntriesMin, bytes = 2 * kLevel0PieceBytesMin;
  CHECK(is_in_pieces_with(entries - 1, bytes - 2));
  CHECK_FALSE(is_in_pieces_with(entries - 1, bytes));
  CHECK_FALSE(is_in_pieces_with(entries, bytes - 2));  // readings
}

TEST_CASE(
    "windows: while writes come runs are sunk or relocated within a budget, in quiet at any "
    "price") {
  const WindowLimits busy{false, 0, 0};
  const WindowLimits rich{false, kWindowBytes, 0};
  const WindowLimits scanned{false, 0, kWindowBytes};
  const WindowLimits quiet{true, 0, 0};
  const Overlap none = overlap_of(1, 0);
  const Overlap little = overlap_of(2, kWindowBytes / 8);
  struct Case {
    std::size_t runs;
    Overlap overlap;
    WindowLimits limits;
    WindowUse want;
  };
  const Case cases[] = {
      {3, none, busy, WindowUse::Nothing},
      {4, none, busy, WindowUse::Sink},
      {16, overlap_of(8, kWindowBytes), busy, WindowUse::Sink},
      {16, overlap_of(9, kWindowBytes), busy, WindowUse::Wait},
      {16, overlap_of(9, kWindowBytes), rich, WindowUse::Relocate},
      {15, overlap_of(9, kWindowBytes), rich, WindowUse::Wait},
      {15, overlap_of(9, kWindowBytes), scanned, WindowUse::RelocateForScans},
      {15, overlap_of(9, kWindowBytes), quiet, WindowUse::Relocate},
      {2, little, quiet, WindowUse::Relocate},
      {2, little, scanned, WindowUse::Wait},
      {3, little, rich, WindowUse::Wait},
      {7, overlap_of(7, kWindowBytes), scanned, WindowUse::Wait},
      {8, overlap_of(8, kWindowBytes), scanned, WindowUse::RelocateForScans},
      {4, little, rich, WindowUse::Sink},
      {16, overlap_of(16, 1), rich, WindowUse::Relocate},
      {16, overlap_of(16, 1), busy, WindowUse::Wait},
      {128, overlap_of(128, kWindowBytes), busy, WindowUse::Relocate},
  };
  for (const Case& each : cases) {
    CAPTURE(each.runs);
    CAPTURE(each.overlap.depth);
    CHECK(use_of(window_of(each.runs), each.overlap, each.limits) == each.want);
  }
}

TEST_CASE("windows: runs that overlap much, and more of them, are surveyed when twice as many") {
  const WindowLimits busy{false, 0, 0};
  const Overlap known = overlap_of(4, kWindowBytes / 2);
  CHECK_FALSE(may_be_used(window_of(3), Overlap{}, busy));
  CHECK(may_be_used(window_of(4), Overlap{}, busy));
  CHECK_FALSE(may_be_used(window_of(5), known, busy));
  CHECK_FALSE(may_be_used(window_of(7), known, busy));
  CHECK(may_be_used(window_of(8), known, busy));
  CHECK(may_be_used(window_of(5), known, {true, 0, 0}));
  CHECK_FALSE(may_be_used(window_of(7), known, {false, 0, kWindowBytes}));
  CHECK(may_be_used(window_of(9), overlap_of(5, 1), {false, 0, kWindowBytes}));
  CHECK_FALSE(may_be_used(window_of(5), known, {false, kWindowBytes, 0}));
  CHECK(may_be_used(window_of(2), known, {true, 0, 0}));
}

TEST_CASE("windows: whatever a survey finds beyond what is known, none is left out that leads on") {
  const std::uint64_t seed = test::test_seed(41);
  CAPTURE(seed);
  SeededRandom random(seed);
  std::size_t left_out = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t runs = 2 + random.below(130);
    const std::size_t known_runs = 1 + random.below(runs);
    const std::size_t known_depth = 1 + random.below(known_runs);
    const std::uint64_t known_bytes = known_depth == 1 ? 0 : random.below(kWindowBytes);
    const std::size_t depth = std::min(runs, known_depth + random.below(2 + runs - known_runs));
    const std::uint64_t bytes =
        depth == 1 ? 0 : known_bytes + random.below(kWindowBytes - known_bytes) + 1;
    const WindowLimits limits{random.below(8) == 0, random.below(2) * random.below(kWindowBytes),
                              random.below(2) * random.below(8'000)};
    const Window window = window_of(runs);
    if (may_be_used(window, overlap_of(known_depth, known_bytes), limits)) continue;
    ++left_out;
    const WindowUse use = use_of(window, overlap_of(depth, bytes), limits);
    CHECK((use == WindowUse::Wait || use == WindowUse::Nothing));
  }
  CHECK(left_out > 1'000);
}

// How much of some runs overlaps, told by their records.

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
