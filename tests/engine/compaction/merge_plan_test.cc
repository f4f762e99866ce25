#include "compaction/merge_plan.h"

#include <cerrno>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "engine/table/table_test_store.h"
#include "support/test_seed.h"

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

// Runs that are walked and runs that are asked by their filters answer alike, as a map does.

namespace {

using test::OwnedEntry;

Bytes newer_key(std::uint64_t i) {
  Bytes key = std::to_string(i);
  return make_full_key(1, Bytes(6 - key.size(), '0') + key);
}

struct NewerFixture : test::TableTestStore {
  NewerFixture() { options.group_bytes = 1024; }

  // A run of one table: of each of `keys` the newest entry is told in `newest`.
  MergeInput add(const std::vector<std::uint64_t>& keys, SequenceNumber first,
                 std::size_t value_bytes) {
    std::vector<OwnedEntry> entries;
    for (const std::uint64_t key : keys) {
      const bool deletes = random.below(5) == 0;
      entries.push_back({newer_key(key), first++, deletes ? EntryKind::Delete : EntryKind::Put,
                         deletes ? Bytes() : Bytes(value_bytes, 'v')});
      newest[entries.back().full_key] =
          std::max(newest[entries.back().full_key], entries.back().sequence);
    }
    REQUIRE(write(std::move(entries)).ok());
    return MergeInput(tables.begin(), tables.end());
  }
  std::vector<std::uint64_t> draw(std::uint64_t below, std::uint64_t one_in) {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; key < below; ++key)
      if (random.below(one_in) == 0) keys.push_back(key);
    return keys;
  }

  std::map<Bytes, SequenceNumber> newest;  // of the runs
};

void check_both(NewerRuns& walked, NewerRuns& asked, ByteView full_key, SequenceNumber sequence,
                bool expected) {
  for (NewerRuns* runs : {&walked, &asked}) {
    const auto superseded = runs->supersede(full_key, sequence);
    REQUIRE(superseded.ok());
    CHECK(*superseded == expected);
  }
}

TEST_CASE("newer runs: what they supersede is told alike, walked or asked") {
  const std::uint64_t seed = test::test_seed(20261123);
  MESSAGE("EDGECASE_TEST_SEED=" << seed);
  for (std::uint64_t round = 0; round < 20; ++round) {
    CAPTURE(round);
    NewerFixture store;
    store.random = SeededRandom(seed + round);
    if (round % 2 == 1) store.options.group_bytes = 16u << 10;  // of many pages
    constexpr std::uint64_t kKeys = 2000;
    const std::vector<std::uint64_t> all = store.draw(kKeys, 1 + store.random.below(3));
    const MergeInput merged = store.add(all, 1, 40);
    store.newest.clear();
    // Sparse ones, which are walked, and dense ones, some of large values.
    std::vector<MergeInput> runs;
    SequenceNumber next = kKeys;
    for (std::uint64_t i = 0; i < 1 + store.random.below(8); ++i) {
      const auto keys = store.draw(kKeys, 1 + store.random.below(60));
      if (keys.empty()) continue;
      runs.push_back(store.add(keys, next, store.random.below(2) == 0 ? 30 : 600));
      next += kKeys;
    }
    NewerRuns walked(*store.cache, runs, {merged});
    NewerRuns asked(*store.cache, runs);
    std::size_t superseded = 0;
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      if (store.random.below(3) == 0) continue;
      const Bytes full_key = newer_key(key);
      // An older one, and one that lies between those of two runs.
      const SequenceNumber sequences[] = {1, (1 + store.random.below(next / kKeys)) * kKeys - 1};
      for (const SequenceNumber sequence : sequences) {
        CAPTURE(key);
        CAPTURE(sequence);
        const auto found = store.newest.find(full_key);
        const bool expected = found != store.newest.end() && found->second > sequence;
        check_both(walked, asked, full_key, sequence, expected);
        superseded += expected ? 1 : 0;
      }
    }
    CHECK((runs.empty() || superseded > 0));
  }
}

TEST_CASE("newer runs: of a walked one the groups between are not read") {
  NewerFixture store;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < 4000; ++key) keys.push_back(key);
  const MergeInput merged = store.add(keys, 1, 40);
  const MergeInput sparse = store.add(store.draw(4000, 4), 5000, 40);
  NewerRuns newer(*store.cache, {sparse}, {merged});
  const std::uint64_t before = store.disk.operations(test::Operation::Read);
  for (const std::uint64_t key : {std::uint64_t{10}, std::uint64_t{3990}})
    REQUIRE(newer.supersede(newer_key(key), 1).ok());
  CHECK(store.disk.operations(test::Operation::Read) - before <= 6);
}

TEST_CASE("newer runs: items whose key was destroyed supersede nothing, those beside them do") {
  NewerFixture store;
  store.encrypt();
  store.namespaces[1].scope_bytes = 1;
  const auto make = [&](std::uint64_t one_in, SequenceNumber first) {
    std::vector<OwnedEntry> entries;
    for (const char scope : {'a', 'b', 'c'})
      for (std::uint64_t i = 0; i < 600; i += one_in)
        entries.push_back({make_full_key(1, scope + std::to_string(1000 + i)), first++,
                           EntryKind::Put, Bytes(60, scope)});
    REQUIRE(store.write(entries).ok());
    return MergeInput(store.tables.begin(), store.tables.end());
  };
  const MergeInput merged = make(1, 1);
  const MergeInput sparse = make(4, 5000);
  store.key_ring->retire(make_full_key(1, "b"), make_full_key(1, "c"), 10'000);
  REQUIRE(store.key_ring->destroy_retired(10'000).value() == 1);
  NewerRuns walked(*store.cache, {sparse}, {merged});
  NewerRuns asked(*store.cache, {sparse});
  for (const char scope : {'a', 'b', 'c'}) {
    for (std::uint64_t i = 0; i < 600; ++i) {
      const Bytes key = make_full_key(1, scope + std::to_string(1000 + i));
      CAPTURE(key);
      check_both(walked, asked, key, 1, scope != 'b' && i % 4 == 0);
    }
  }
}

TEST_CASE("newer runs: a read that fails is told") {
  NewerFixture store;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < 500; ++key) keys.push_back(key);
  const MergeInput merged = store.add(keys, 1, 40);
  const MergeInput sparse = store.add(store.draw(500, 4), 1000, 40);
  NewerRuns newer(*store.cache, {sparse}, {merged});
  store.disk.fail_nth(test::Operation::Read, 1, EIO, test::FaultMode::Sticky, "/v");
  Status told;
  for (std::uint64_t key = 0; key < 500 && told.ok(); ++key)
    told = newer.supersede(newer_key(key), 1).status();
  CHECK(told.code() == StatusCode::IoError);
}

}  // namespace
}  // namespace edgecase::engine
