#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/useful_sources.h"
#include "engine/compaction/slices_fixture.h"
#include "engine/compaction/source_fixture.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {

// When what flushes brought goes into the trees.

namespace {

struct Arrivals : test::SourceFixture {
  CompactorContext sources = context_of_sources();
  GarbageEstimate garbage{sources};
  ArrivalSource source{garbage};

  // The first offer that is not a look at what arrives.
  Offer next_offer() {
    for (int i = 0; i < 8; ++i) {
      auto offer = source.next(view());
      REQUIRE(offer.ok());
      if (offer->kind != Offer::Kind::Step) return *std::move(offer);
    }
    FAIL("it looks at the same table again and again");
    return {};
  }
};

}  // namespace

TEST_CASE("level 0 is sunk from its fourth table on, by its records alone") {
  Arrivals has;
  CHECK(has.next_offer().kind == Offer::Kind::None);
  for (std::size_t i = 1; i < kLevel0TablesMax; ++i) {
    has.flush(0, 100);
    CHECK(has.next_offer().kind == Offer::Kind::None);
  }
  has.flush(0, 100);
  Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  CHECK(offer.plan.mode == MergeMode::Sink);
  CHECK(offer.plan.groups.size() == kLevel0TablesMax);
  const std::size_t files = has.versions->current()->value_files.size();
  has.carry_out(std::move(offer.plan), has.source, &has.garbage);
  CHECK(has.versions->current()->level0.empty());
  CHECK(has.versions->current()->value_files.size() == files);  // no value was written again
  CHECK(has.next_offer().kind == Offer::Kind::None);
}

TEST_CASE("records of single values are merged once the smaller runs have a share of the largest") {
  Arrivals has;
  has.value_bytes = 64u << 10;  // more than the coalesce threshold
  const auto sink = [&] {
    Offer offer = has.next_offer();
    REQUIRE(offer.kind == Offer::Kind::Merge);
    has.carry_out(std::move(offer.plan), has.source, &has.garbage);
  };
  has.flush(0, 40);
  sink();
  REQUIRE(has.versions->current()->trees.at(1).size() == 1);
  // A fortieth of what is there waits in level 0 for others.
  has.flush(0, 1);
  CHECK(has.next_offer().kind == Offer::Kind::None);
  has.flush(1, 4);
  sink();
  REQUIRE(has.versions->current()->trees.at(1).size() == 2);
  const Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  CHECK(offer.plan.mode == MergeMode::Sink);
  CHECK(offer.plan.singles.size() == 2);
}

// Which bytes that nobody can read are freed, and from how many on.

namespace {

struct Garbage : test::SourceFixture {
  Garbage() { value_bytes = 64u << 10; }  // single values: their records say what is superseded

  CompactorContext sources = context_of_sources();
  GarbageEstimate garbage{sources};
  WindowSource windows{sources, garbage};
  GarbageSource source{garbage, windows};

  Offer next_offer(bool idle = false) {
    garbage.follow(*versions->current());
    auto offer = source.next(view(idle));
    REQUIRE(offer.ok());
    return *std::move(offer);
  }
  // All of level 0 into the tree, and the records of its runs into one: what is superseded is not
  // pointed to any more.
  void merge_records() {
    if (auto plan = pick_level0(*versions->current(), 1)) carry_out(*std::move(plan), source);
    if (auto plan = pick_singles(*versions->current(), 2, UINT64_MAX))
      carry_out(*std::move(plan), source);
  }
};

}  // namespace

TEST_CASE("the more garbage there is, the less of a table must be dead to be cleaned") {
  CHECK(std::isinf(cleaned_share_min(0)));
  CHECK(std::isinf(cleaned_share_min(kGarbageMin - 0.001)));
  double least = 1;
  for (const double garbage : {kGarbageMin, 0.15, 0.2, 0.25}) {
    CAPTURE(garbage);
    CHECK(cleaned_share_min(garbage) < least);
    least = cleaned_share_min(garbage);
  }
  CHECK(cleaned_share_min(0.3) == least);
  CHECK(cleaned_share_min(100) == least);
  CHECK(least > 0);
}

TEST_CASE("a file of which little lives is emptied, and then it is gone") {
  Garbage has;
  has.flush(0, 20);
  const FileNumber old = has.versions->current()->value_files.begin()->first;
  has.merge_records();
  CHECK(has.next_offer().kind == Offer::Kind::None);
  has.flush(0, 16);  // four fifths of it are superseded
  has.merge_records();
  Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  CHECK(offer.plan.mode == MergeMode::Relocate);
  CHECK(offer.plan.evacuated == std::set<FileNumber>{old});
  has.carry_out(std::move(offer.plan), has.source, &has.garbage);
  const auto version = has.versions->current();
  CHECK_FALSE(version->value_files.contains(old));
  CHECK(garbage_share(*version, 0) < 0.01);
  CHECK(has.next_offer().kind == Offer::Kind::None);
}

TEST_CASE("a file of which most lives stays, until there is quiet and little is enough") {
  Garbage has;
  has.flush(0, 20);
  has.merge_records();
  has.flush(0, 2);
  has.merge_records();
  CHECK(has.next_offer().kind == Offer::Kind::None);
  CHECK(has.garbage.idle_share() > 0.05);  // writers are not slowed for what is not worth it
  CHECK(pick_evacuation(*has.versions->current(), kQuietEvacuation).has_value());
}

TEST_CASE("tables that wait to be sampled come one at a time, and before anything is cleaned") {
  Garbage has;
  has.value_bytes = 100;
  has.flush(0, 500);
  has.merge_records();
  has.source.settle(*has.versions->current());
  REQUIRE(has.garbage.has_samples());
  CHECK(has.next_offer(true).kind == Offer::Kind::Step);
  CHECK_FALSE(has.garbage.has_samples());
  CHECK(has.next_offer(true).kind == Offer::Kind::None);
}

TEST_CASE("samples that wait are forgotten when the lane fails") {
  Garbage has;
  has.value_bytes = 100;
  has.flush(0, 500);
  has.merge_records();
  has.source.settle(*has.versions->current());
  REQUIRE(has.garbage.has_samples());
  has.source.interrupted(io_error("a drive is away"));
  CHECK_FALSE(has.garbage.has_samples());
}

// Merges of ranges in turn: what lies outside of a range stays in its run, cut at its bounds, and
// what updates leave of garbage is bounded while they go on.

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

// What is done once writes rest, and that it comes to an end.

namespace {

struct Settling : test::SourceFixture {
  CompactorContext sources = context_of_sources();
  GarbageEstimate garbage{sources};
  WindowSource windows{sources, garbage};
  GarbageSource cleaning{garbage, windows};
  SettlingSource source{cleaning};

  Offer::Kind next_kind(bool idle) {
    auto offer = source.next(view(idle));
    REQUIRE(offer.ok());
    return offer->kind;
  }
};

}  // namespace

TEST_CASE("under load nothing is settled: it waits for quiet") {
  Settling has;
  has.flush(0, 100);
  CHECK(has.next_kind(false) == Offer::Kind::Waits);
}

TEST_CASE("in quiet one table of level 0 is enough, and a store that is settled comes to rest") {
  Settling has;
  CHECK(has.next_kind(true) == Offer::Kind::None);
  has.flush(0, 100);
  has.carry_out_next(has.source, true, &has.garbage);
  CHECK(has.versions->current()->level0.empty());
  CHECK(has.next_kind(true) == Offer::Kind::Step);  // all tables are to be sampled once more
  CHECK(has.garbage.has_samples());
  CHECK(has.next_kind(true) == Offer::Kind::None);
  has.flush(100, 200);
  CHECK(has.next_kind(true) == Offer::Kind::Merge);
}

TEST_CASE("in quiet what a range delete covers goes, under load many do not wait") {
  for (const bool idle : {true, false}) {
    CAPTURE(idle);
    Settling has;
    has.flush(0, 1000);
    has.carry_out_next(has.source, true, &has.garbage);
    const auto cover = [&](int i) {
      has.flush(0, 0, 1, make_range_delete(1, test::key_of(i), test::key_of(i) + "x", 0));
    };
    cover(1);
    CHECK((has.next_kind(idle) == Offer::Kind::Merge) == idle);
    for (int i = 3; i < 300 * 2; i += 2) cover(i);
    REQUIRE(has.versions->current()->range_delete_list.size() >= 256);
    CHECK(has.next_kind(idle) == Offer::Kind::Merge);
  }
}

}  // namespace edgecase::engine
