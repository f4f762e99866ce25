// What is done with level 0 and with runs alike in size, and when it is worth a survey to know.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "compaction/picker.h"
#include "edgecase/random.h"
#include "support/test_seed.h"

namespace edgecase::engine {
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

}  // namespace edgecase::engine
