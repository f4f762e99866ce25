// Which tables range deletes concern: found by search, and the same as if each were asked.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compaction/due_sources.h"
#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

constexpr NamespaceId kNamespaces = 2;
constexpr std::uint64_t kKeys = 4000;

Bytes key_of(NamespaceId id, std::uint64_t key) {
  return make_full_key(id, std::to_string(10'000 + key));
}

// Runs of disjoint tables in two namespaces, each into a value file of its own.
class VersionMaker {
 public:
  VersionMaker() {
    edit_.namespace_id_limit = kNamespaces + 1;
    for (NamespaceId id = 1; id <= kNamespaces; ++id)
      edit_.namespaces.push_back({id, "space" + std::to_string(id), {}});
  }

  void add_table(NamespaceId id, FileNumber run, std::uint64_t first, std::uint64_t last,
                 SequenceNumber sequence, SequenceNumber purged, std::uint64_t bytes) {
    ValueFileMetadata file;
    file.number = ++number_;
    file.namespace_id = id;
    file.size_bytes = bytes;
    file.item_bytes = bytes;
    edit_.added_value_files.push_back(file);
    TableMetadata table;
    table.number = ++number_;
    table.level = 1;
    table.run = run;
    table.namespace_id = id;
    table.item_count = 1;
    table.sequence_min = sequence;
    table.sequence_max = sequence + 1;
    table.purged_sequence = purged;
    table.smallest = key_of(id, first);
    table.largest = key_of(id, last);
    table.value_files.push_back({file.number, bytes});
    edit_.added_tables.push_back(std::move(table));
  }
  void add_range(NamespaceId id, std::uint64_t first, std::uint64_t end, SequenceNumber sequence) {
    edit_.range_deletes.push_back({key_of(id, first), key_of(id, end), sequence, true});
  }
  const VersionEdit& edit() const { return edit_; }
  Version make() {
    edit_.file_number_limit = number_ + 1;
    VersionState state;
    REQUIRE(state.apply(edit_).ok());
    return *state.version;
  }

 private:
  VersionEdit edit_;
  FileNumber number_ = 100;
};

bool is_older(const TableMetadata& table, const RangeDelete& range) {
  return std::max(table.sequence_min, table.purged_sequence) < range.sequence &&
         table.largest >= range.lower && table.smallest < range.upper;
}

TEST_CASE("ranges stay, and make a merge, exactly where a table holds something older") {
  const std::uint64_t seed = test::test_seed(5);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    VersionMaker maker;
    for (FileNumber run = 1; run <= 6; ++run) {
      const auto id = static_cast<NamespaceId>(1 + run % kNamespaces);
      std::uint64_t at = random.below(kKeys / 2);
      while (at + 1 < kKeys && random.below(5) != 0) {
        const std::uint64_t last = std::min(kKeys - 1, at + random.below(200));
        maker.add_table(id, run, at, last, 10 + random.below(80), random.below(100), 1u << 20);
        at = last + 1 + random.below(300);
      }
    }
    for (std::uint64_t at = random.below(50); at + 40 < kKeys; at += 40 + random.below(300))
      maker.add_range(static_cast<NamespaceId>(1 + random.below(kNamespaces)), at,
                      at + 1 + random.below(40), 1 + random.below(99));
    const Version version = maker.make();
    const auto& tables = maker.edit().added_tables;
    std::size_t expected = 0;
    for (const RangeDelete& range : maker.edit().range_deletes)
      expected += std::any_of(tables.begin(), tables.end(),
                              [&](const TableMetadata& table) { return is_older(table, range); });
    CHECK(version.range_delete_list.size() == expected);
    // One of them at a time.
    for (const RangeDelete& range : version.range_delete_list) {
      PurgeContext one;
      one.within.push_back({range.lower, range.upper});
      const auto plan = pick_purge(version, one);
      REQUIRE(plan.has_value());
      for (const MergeInput& input : plan->groups)
        CHECK(std::any_of(input.begin(), input.end(),
                          [&](const TablePointer& table) { return is_older(*table, range); }));
      one.upto = 0;
      CHECK_FALSE(pick_purge(version, one).has_value());
    }
    // What lies beside all of them.
    PurgeContext beside;
    beside.within.push_back({key_of(kNamespaces + 1, 0), {}});
    CHECK_FALSE(pick_purge(version, beside).has_value());
  }
}

TEST_CASE("small runs are purged together where ranges are many, large ones and few ranges not") {
  constexpr std::uint64_t kSmallBytes = 1u << 20;
  VersionMaker maker;
  for (FileNumber run = 1; run <= 5; ++run) maker.add_table(1, run, 0, kKeys, 1, 0, kSmallBytes);
  maker.add_table(1, 6, 0, kKeys, 1, 0, 32 * kSmallBytes);
  for (std::uint64_t at = 0; at < kKeys; at += 2) maker.add_range(1, at, at + 1, 50);
  const Version version = maker.make();
  PurgeContext context;
  const auto& ranges = version.range_delete_list;
  REQUIRE(ranges.size() == kKeys / 2);
  context.within.push_back({ranges[0].lower, ranges[0].upper});
  auto plan = pick_purge(version, context);
  REQUIRE(plan.has_value());
  CHECK(plan->groups.size() == 1);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    context.within.push_back({ranges[i].lower, ranges[i].upper});
  plan = pick_purge(version, context);
  REQUIRE(plan.has_value());
  CHECK(plan->groups.size() == 5);
  CHECK(plan->item_bytes() == 5 * kSmallBytes);
  CHECK(plan->output_run == 0);
  CHECK(plan->mode == MergeMode::Relocate);
}

}  // namespace
}  // namespace edgecase::engine
