// Merges of ranges in turn: what lies outside of a range stays in its run, cut at its bounds, and
// what updates leave of garbage is bounded while they go on.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compaction/picker.h"
#include "engine/compaction/slices_fixture.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {
namespace {

using test::EngineFixture;

constexpr std::uint64_t kRangeKeys = 10'000;

const Run& largest_run(const Version& version) {
  const Tree& tree = version.trees.at(1);
  return *std::max_element(tree.begin(), tree.end(),
                           [](const Run& a, const Run& b) { return a.item_bytes < b.item_bytes; });
}

// Counts the tables of runs besides `into` that have a key in the range.
std::size_t tables_within(const Version& version, const MergePlan& plan) {
  std::size_t count = 0;
  for (const Run& run : version.trees.at(1)) {
    if (run.number == plan.output_run) continue;
    for (const TablePointer& table : run.tables)
      count += table->largest >= plan.lower && (plan.upper.empty() || table->smallest < plan.upper);
  }
  return count;
}

}  // namespace

TEST_CASE("a merge of a range keeps every key, and leaves what lies outside in its runs" *
          doctest::test_suite("bulk")) {
  SlicesFixture store(slices_seed());
  store.add_run(kRangeKeys, 5'000, 64u << 10);
  for (int round = 0; round < 36; ++round) {
    if (round % 3 == 0) store.add_run(kRangeKeys, 1'000, 16u << 10);
    const auto before = store.contents();
    const Version& version = *store.state.version;
    const Run into = largest_run(version);
    std::set<FileNumber> runs;
    for (const Run& run : version.trees.at(1)) runs.insert(run.number);
    const auto plan = plan_range(version, into, slice_key(store.random.below(kRangeKeys)),
                                 (16u << 10) + store.random.below(64u << 10));
    CHECK(plan.output_run == into.number);
    store.merge(plan);
    CAPTURE(round);
    REQUIRE(store.contents() == before);
    for (const Run& run : store.state.version->trees.at(1)) CHECK(runs.contains(run.number));
  }
}

TEST_CASE("a merge of a range that is not cut short leaves nothing of it in other runs") {
  SlicesFixture store(5);
  store.add_run(kRangeKeys, 4'000, 64u << 10);
  store.add_run(kRangeKeys, 1'000, 16u << 10);
  // Small tables, so that there are several to choose from.
  auto plan = plan_range(*store.state.version, largest_run(*store.state.version), "", 64u << 10);
  store.merge(plan);
  REQUIRE(largest_run(*store.state.version).tables.size() >= 2);
  store.add_run(kRangeKeys, 1'000, 16u << 10);
  const auto before = store.contents();
  const Run into = largest_run(*store.state.version);
  plan = plan_range(*store.state.version, into, into.tables[0]->largest, 1);
  CHECK(plan.lower == into.tables[1]->smallest);
  // Nothing outside has keys of a range: its entries need no sequence each.
  const auto first = plan_range(*store.state.version, into, "", 1);
  CHECK(first.upper == into.tables[1]->smallest);
  CHECK(first.one_sequence.has_value());
  plan.slice_bytes = 1u << 30;
  plan.table_item_bytes = 1u << 30;
  CHECK(tables_within(*store.state.version, plan) > 0);
  store.merge(plan);
  CHECK(tables_within(*store.state.version, plan) == 0);
  CHECK(store.contents() == before);
  // Its bounds are those of tables: none of the largest run reaches over one.
  for (const TablePointer& table : largest_run(*store.state.version).tables) {
    CHECK_FALSE((table->smallest < plan.lower && table->largest >= plan.lower));
    CHECK_FALSE((table->smallest < plan.upper && table->largest >= plan.upper));
  }
}

TEST_CASE("what alone reaches out of a range, past nothing else, is cut at its end") {
  SlicesFixture store(8);
  store.add_run_of({100, 110, 120});
  store.add_run_of({500, 510, 520});
  // One run of two tables.
  const FileNumber first_run = store.state.version->trees.at(1).back().number;
  MergePlan sink;
  for (const Run& run : store.state.version->trees.at(1)) sink.groups.push_back(run.tables);
  sink.output_run = first_run;
  sink.set_surroundings(*store.state.version);
  sink.barriers = {slice_key(400)};
  store.merge(sink);
  REQUIRE(store.state.version->trees.at(1).size() == 1);
  REQUIRE(largest_run(*store.state.version).tables.size() == 2);
  store.add_run_of({200, 600});
  const auto before = store.contents();
  auto plan = plan_range(*store.state.version, largest_run(*store.state.version), "", 1);
  plan.slice_bytes = 1u << 30;
  REQUIRE(plan.upper == slice_key(500));
  store.merge(plan);
  CHECK(store.contents() == before);
  CHECK(tables_within(*store.state.version, plan) == 0);
}

TEST_CASE("ranges are chosen in a circle") {
  SlicesFixture store(6);
  store.add_run(kRangeKeys, 4'000, 64u << 10);
  store.add_run(kRangeKeys, 500, 16u << 10);
  for (int i = 0; i < 8; ++i) {
    const Version& version = *store.state.version;
    const Run into = largest_run(version);
    store.merge(plan_range(version, into, into.tables.back()->smallest, 64u << 10));
  }
  const Version& version = *store.state.version;
  const Run into = largest_run(version);
  REQUIRE(into.tables.size() >= 4);
  const auto chosen_from = [&](ByteView from) { return plan_range(version, into, from, 1).lower; };
  const auto begin_of = [&](std::size_t i) { return into.tables[i]->smallest; };
  CHECK(chosen_from("").empty());  // what comes before the first table, too
  CHECK(chosen_from(into.tables[0]->smallest) == begin_of(1));
  CHECK(chosen_from(into.tables[1]->largest) == begin_of(2));
  CHECK(chosen_from(into.tables[2]->largest) == begin_of(3));
  CHECK(chosen_from(into.tables.back()->largest).empty());
}

// Small values that are put again or deleted at random, without a pause.
struct UpdatedStore : EngineFixture {
  static constexpr std::uint64_t kStoreKeys = 60'000;

  UpdatedStore() : keys(slices_seed()) {
    options.group_bytes = 2048;
    options.memtable_bytes = 256u << 10;
    REQUIRE(open().ok());
    make_namespace("default");
    for (std::uint64_t i = 0; i < kStoreKeys; ++i) put_value(i);
    REQUIRE(engine->flush().ok());
    REQUIRE(engine->compact({1}, {}).ok());
  }

  void put_value(std::uint64_t i) {
    const Bytes value = std::to_string(keys.next()) + Bytes(80, 'v');
    model.insert_or_assign(slice_key(i), value);
    REQUIRE(put(1, slice_key(i), value, Durability::Async).ok());
  }
  void update(int times) {
    for (int i = 0; i < times; ++i) {
      const std::uint64_t key = keys.below(kStoreKeys);
      if (keys.below(10) != 0) {
        put_value(key);
        continue;
      }
      model.erase(slice_key(key));
      WriteBatch batch;
      batch.remove(1, slice_key(key));
      REQUIRE(engine->write(batch, Durability::Async).ok());
    }
    REQUIRE(engine->flush().ok());
  }
  std::map<Bytes, Bytes> contents() {
    auto iterator = engine->scan(1, {}, {});
    REQUIRE(iterator.ok());
    std::map<Bytes, Bytes> found;
    for (auto& at = **iterator; at.valid(); at.next()) found.emplace(at.key(), at.value());
    return found;
  }

  SeededRandom keys;
  std::map<Bytes, Bytes> model;
};

TEST_CASE("updates of small values without a pause: garbage and what is written stay bounded" *
          doctest::test_suite("bulk")) {
  UpdatedStore store;
  const Stats before = store.engine->stats();
  const std::uint64_t live_bytes = before.values.live_bytes;
  std::uint64_t most = 0;
  for (int round = 0; round < 150; ++round) {
    store.update(2'000);
    store.executor.run_all();
    most = std::max(most, store.engine->stats().values.live_bytes);
  }
  const Stats after = store.engine->stats();
  CAPTURE(live_bytes);
  CAPTURE(most);
  CHECK(most < live_bytes * 3 / 2);
  const std::uint64_t user_bytes = after.user_bytes_written - before.user_bytes_written;
  CHECK(after.values.bytes_written - before.values.bytes_written < user_bytes * 9 / 2);
  CHECK(store.contents() == store.model);
}

TEST_CASE("a process that ends while ranges are merged leaves a store that is whole" *
          doctest::test_suite("bulk")) {
  UpdatedStore store;
  for (int round = 0; round < 96; ++round) {
    store.update(2'000);
    CAPTURE(round);
    if (round % 16 < 12) {
      store.executor.run_all();
      continue;
    }
    for (std::uint64_t turns = store.keys.below(300); turns > 0; --turns) store.executor.run_one();
    store.reopen();
    REQUIRE(store.contents() == store.model);
  }
}

}  // namespace edgecase::engine
