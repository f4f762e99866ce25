#include <doctest/doctest.h>

#include <cerrno>
#include <map>

#include "compaction/record_merge.h"
#include "engine/table/table_test_store.h"
#include "support/test_seed.h"

namespace edgecase::engine {

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
