#include "compaction/merge_plan.h"

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

namespace edgecase::engine {
namespace {

struct Span {
  const char* smallest;
  const char* largest;
};

std::shared_ptr<TableMetadata> table_of(FileNumber number, Span keys, SequenceNumber sequence_min,
                                        SequenceNumber sequence_max) {
  auto table = std::make_shared<TableMetadata>();
  table->number = number;
  table->run = number;
  table->level = 1;
  table->namespace_id = 1;
  table->smallest = make_full_key(1, keys.smallest);
  table->largest = make_full_key(1, keys.largest);
  table->sequence_min = sequence_min;
  table->sequence_max = sequence_max;
  return table;
}

// A version of these tables, each a run of its own.
Version version_of(std::vector<TablePointer> tables) {
  Version version;
  for (const TablePointer& table : tables)
    version.trees[1].push_back({table->number,
                                table->level,
                                table->kind,
                                table->life,
                                table->sequence_min,
                                table->sequence_max,
                                0,
                                {table}});
  version.tables = std::move(tables);
  return version;
}

}  // namespace

TEST_CASE("merge plan: groups share a sequence unless something lies between theirs") {
  const TablePointer older = table_of(1, {"a", "m"}, 10, 20);
  const TablePointer newer = table_of(2, {"d", "z"}, 40, 50);
  struct Case {
    const char* what;
    TablePointer other;
    std::size_t others;
    bool shares;
  };
  const Case cases[] = {
      {"nothing else", nullptr, 0, true},
      {"between them, over their keys", table_of(3, {"c", "f"}, 25, 30), 1, false},
      {"between them, beside their keys", table_of(3, {"zz", "zzz"}, 25, 30), 0, true},
      {"older than both", table_of(3, {"c", "f"}, 1, 9), 1, true},
      {"newer than both", table_of(3, {"c", "f"}, 51, 60), 1, true},
      {"beginning where they end", table_of(3, {"c", "f"}, 50, 60), 1, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    std::vector<TablePointer> tables{older, newer};
    if (c.other != nullptr) tables.push_back(c.other);
    MergePlan plan;
    plan.groups = {{older}, {newer}};
    plan.set_surroundings(version_of(tables));
    CHECK(plan.others.size() == c.others);
    CHECK(plan.one_sequence.has_value() == c.shares);
    if (c.shares) CHECK(*plan.one_sequence == 50);
  }
}

TEST_CASE("merge plan: the output has what holds for all inputs") {
  const auto first = table_of(1, {"a", "c"}, 10, 20);
  const auto second = table_of(2, {"b", "d"}, 21, 30);
  first->purged_sequence = 7;
  second->purged_sequence = 5;
  first->rule_epoch = 2;
  second->rule_epoch = 3;
  first->life = second->life = 4;
  MergePlan plan;
  plan.groups = {{first}, {second}};
  plan.set_surroundings(version_of({first, second}));
  CHECK(plan.purged_sequence == 5);
  CHECK(plan.rule_epoch == 2);
  CHECK(plan.life == 4);
  second->life = 1;
  plan.set_surroundings(version_of({first, second}));
  CHECK(plan.life == 0);
}

TEST_CASE("merge plan: tables that stay in the output's run are barriers, in key order") {
  const TablePointer merged = table_of(1, {"a", "z"}, 10, 20);
  const auto stays = [](FileNumber number, Span keys) {
    auto table = table_of(number, keys, 1, 5);
    table->run = 9;
    return table;
  };
  MergePlan plan;
  plan.groups = {{merged}};
  plan.output_run = 9;
  plan.set_surroundings(version_of({merged, stays(3, {"p", "q"}), stays(2, {"c", "d"})}));
  REQUIRE(plan.barriers.size() == 2);
  CHECK(plan.barriers[0] == make_full_key(1, "c"));
  CHECK(plan.barriers[1] == make_full_key(1, "p"));
}

TEST_CASE("merge plan: files that come out are a part of what goes in, within bounds") {
  const auto of_bytes = [](std::uint64_t bytes) {
    auto table = table_of(1, {"a", "b"}, 1, 2);
    table->value_files = {{1, bytes}};
    MergePlan plan;
    plan.groups = {{table}};
    return plan;
  };
  CHECK(of_bytes(100).item_bytes() == 100);
  CHECK(of_bytes(100).value_file_bytes() == 512u << 10);
  CHECK(of_bytes(64u << 20).value_file_bytes() == 8u << 20);
  CHECK(of_bytes(UINT64_C(1) << 40).value_file_bytes() == kMergedValueFileBytesMax);
  MergePlan slice = of_bytes(64u << 20);
  slice.slice_bytes = 3u << 20;
  CHECK(slice.value_file_bytes() == 3u << 20);
  CHECK(slice.rest_table_bytes() == 3u << 20);
}

}  // namespace edgecase::engine
