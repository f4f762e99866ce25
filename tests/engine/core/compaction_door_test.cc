#include <map>

#include "core/compaction_door.h"
#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {
namespace {

struct TwoNamespaces : test::EngineFixture {
  TwoNamespaces() {
    options.coalesce_threshold_bytes = 64;
    REQUIRE(open().ok());
    kept = make_namespace("kept");
    doomed = make_namespace("doomed");
  }

  void fill(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      const std::string key = "k" + std::to_string(i);
      REQUIRE(put(kept, key, "kept" + key).ok());
      REQUIRE(put(doomed, key, "doomed" + key).ok());
      if (i % 4 == 0) REQUIRE(put(doomed, "large" + key, Bytes(100, 'x')).ok());
    }
  }
  std::size_t count(NamespaceId id) {
    const auto stats = engine->range_stats(id, {}, {});
    return stats.ok() ? stats->entries : 0;
  }
  void expect_dropped(int entries_kept) {
    CHECK(engine->get(doomed, "k1", {}).status().code() == StatusCode::NotFound);
    CHECK(engine->scan(doomed, {}, {}).status().code() == StatusCode::NotFound);
    CHECK(engine->range_stats(doomed, {}, {}).status().code() == StatusCode::NotFound);
    CHECK(put(doomed, "k1", "again").code() == StatusCode::InvalidArgument);
    CHECK(engine->find_namespace("doomed").status().code() == StatusCode::NotFound);
    CHECK(engine->drop_namespace(doomed).code() == StatusCode::NotFound);
    CHECK(count(kept) == static_cast<std::size_t>(entries_kept));
    CHECK(get(kept, "k1") == "keptk1");
  }
  void run_background() {
    while (executor.run_one()) {
    }
  }
  std::size_t value_files() {
    std::size_t files = 0;
    const auto entries = disk.list_directory("/v/store");
    REQUIRE(entries.ok());
    for (const DirectoryEntry& entry : *entries) files += entry.name.ends_with(".val");
    return files;
  }
  void expect_sound() {
    close();
    test::RecordingObserver observer;
    const auto report = check_store(disk, options, observer);
    REQUIRE(report.ok());
    CAPTURE(observer.all());
    CHECK(report->problems == 0);
  }

  NamespaceId kept = 0;
  NamespaceId doomed = 0;
};

TEST_CASE("a dropped namespace is gone at once, wherever its entries lie") {
  TwoNamespaces store;
  store.fill(0, 20);
  REQUIRE(store.engine->flush().ok());
  store.fill(20, 40);  // in the memtable
  CHECK(store.count(store.doomed) == 50);
  REQUIRE(store.engine->drop_namespace(store.doomed).ok());
  store.expect_dropped(40);
  SUBCASE("and stays gone after reopening") {
    store.reopen();
    store.expect_dropped(40);
  }
  SUBCASE("after a flush") {
    REQUIRE(store.engine->flush().ok());
    store.expect_dropped(40);
    store.reopen();
    store.expect_dropped(40);
  }
  SUBCASE("after a crash") {
    store.disk.power_cut(5, test::CutPolicy::None);
    store.reopen();
    store.expect_dropped(40);
  }
  SUBCASE("after merges") {
    for (int i = 0; i < 6; ++i) {
      for (int k = 0; k < 40; ++k) {
        const std::string key = "k" + std::to_string(k);
        REQUIRE(store.put(store.kept, key, "kept" + key).ok());
      }
      REQUIRE(store.engine->flush().ok());
    }
    REQUIRE(store.engine->compact({store.kept}, {}).ok());
    store.expect_dropped(40);
  }
  store.run_background();
  store.expect_sound();
}

TEST_CASE("a namespace of the same name that is made later sees nothing old") {
  TwoNamespaces store;
  store.fill(0, 10);
  REQUIRE(store.engine->flush().ok());
  store.fill(10, 20);
  REQUIRE(store.engine->drop_namespace(store.doomed).ok());
  const NamespaceId second = store.make_namespace("doomed");
  CHECK(second > store.doomed);
  CHECK(store.count(second) == 0);
  REQUIRE(store.put(second, "k1", "new").ok());
  REQUIRE(store.engine->flush().ok());
  store.reopen();
  CHECK(store.count(second) == 1);
  CHECK(store.get(second, "k1") == "new");
  CHECK(store.engine->find_namespace("doomed")->id == second);
  // The last id is not given out again either.
  REQUIRE(store.engine->drop_namespace(second).ok());
  store.reopen();
  CHECK(store.make_namespace("doomed") > second);
  store.expect_sound();
}

TEST_CASE("the files of a dropped namespace go when no iterator reads them") {
  TwoNamespaces store;
  store.fill(0, 20);
  REQUIRE(store.engine->flush().ok());
  CHECK(store.value_files() == 2);
  auto scan = store.engine->scan(store.doomed, {}, {});
  const auto snapshot = store.engine->snapshot();
  REQUIRE(scan.ok());
  REQUIRE(store.engine->drop_namespace(store.doomed).ok());
  store.run_background();
  CHECK(store.value_files() == 2);
  ReadOptions old;
  old.snapshot = snapshot;
  CHECK_FALSE(store.engine->get(store.doomed, "k1", old).ok());
  std::size_t entries = 0;
  for (; (*scan)->valid(); (*scan)->next()) entries += !(*scan)->value().empty();
  CHECK(entries == 1);  // the one where it stood
  CHECK((*scan)->status().code() == StatusCode::NotFound);
  scan->reset();
  CHECK(store.value_files() == 2);  // the snapshot still holds them
}

TEST_CASE("files of a dropped namespace are unlinked and the shared table stays readable") {
  TwoNamespaces store;
  store.fill(0, 20);
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->drop_namespace(store.doomed).ok());
  store.run_background();
  CHECK(store.value_files() == 1);
  store.expect_dropped(20);
  store.expect_sound();
}

TEST_CASE("a drop survives being cut short at every operation, or did not happen") {
  for (std::uint64_t operation = 1;; ++operation) {
    CAPTURE(operation);
    TwoNamespaces store;
    store.fill(0, 6);
    REQUIRE(store.engine->flush().ok());
    store.fill(6, 9);
    store.disk.stop_at(operation);
    const bool dropped = store.engine->drop_namespace(store.doomed).ok();
    if (dropped) {
      store.run_background();
      static_cast<void>(store.engine->flush().ok());
    }
    const bool through = !store.disk.stopped();
    store.disk.power_cut(operation, test::CutPolicy::Any);
    store.reopen();
    if (dropped || !store.engine->find_namespace("doomed").ok()) {
      store.expect_dropped(9);
    } else {
      CHECK(store.count(store.doomed) == 12);
      CHECK(store.get(store.doomed, "k7") == "doomedk7");
    }
    CHECK(store.count(store.kept) == 9);
    store.expect_sound();
    if (through) break;
  }
}

TEST_CASE("what a flush was writing of a namespace when it was dropped is left out") {
  TwoNamespaces store;
  store.fill(0, 10);
  const auto id = store.doomed;
  VersionState state;
  state.namespaces = {{1, "kept", {}}};
  state.namespace_id_limit = 3;
  VersionEdit edit;
  edit.added_value_files.resize(2);
  edit.added_value_files[0].number = 10;
  edit.added_value_files[0].namespace_id = 1;
  edit.added_value_files[1].number = 11;
  edit.added_value_files[1].namespace_id = id;
  TableMetadata shared;
  shared.number = 12;
  shared.value_files = {{10, 5}, {11, 5}};
  TableMetadata alone;
  alone.number = 13;
  alone.value_files = {{11, 7}};
  edit.added_tables = {shared, alone};
  edit.removed_tables = {5};
  edit.removed_value_files = {6};
  const auto withdrawn = withdraw_dropped(state, edit);
  REQUIRE(withdrawn.size() == 2);
  CHECK(withdrawn[0].number == 11);
  CHECK(withdrawn[1].number == 13);
  CHECK(edit.added_value_files.size() == 1);
  REQUIRE(edit.added_tables.size() == 1);
  CHECK(edit.added_tables[0].value_files.size() == 1);
  CHECK(edit.removed_tables.empty());
  CHECK(edit.removed_value_files.empty());
}

TEST_CASE("nobody waits for the overwriting of what was dropped") {
  TwoNamespaces store;
  store.options.removal = Removal::Overwrite;
  store.options.wal_limit_bytes = 64u << 20;
  store.options.wal_segment_bytes = 4u << 20;
  store.reopen();
  store.disk.keep_freed();
  const Bytes needle = "nobody wants this any more";
  constexpr std::uint64_t kLargeBytes = 2u << 20;
  for (int i = 0; i < 20; ++i)
    REQUIRE(
        store.put(store.doomed, "k" + std::to_string(i), needle + Bytes(kLargeBytes, 'x')).ok());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i)
      REQUIRE(store.put(store.kept, "k" + std::to_string(7 * i % 50), Bytes(1000, 'y')).ok());
    REQUIRE(store.engine->flush().ok());
  }
  store.run_background();
  REQUIRE(store.engine->drop_namespace(store.doomed).ok());
  const std::uint64_t before = store.engine->stats().erasure.overwritten_bytes;
  const auto overwritten = [&] { return store.engine->stats().erasure.overwritten_bytes - before; };
  REQUIRE(store.engine->compact({store.kept}, {}).ok());
  CHECK(overwritten() < 16 * kLargeBytes);
  CHECK(store.value_files() > 1);
  SUBCASE("nor does an erasure elsewhere") {
    WriteBatch batch;
    batch.erase_range(store.kept, "k1", "k2");
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    REQUIRE(store.engine->erase().ok());
    CHECK(store.value_files() > 1);
  }
  SUBCASE("nor does the next start") {
    store.reopen();
    CHECK(store.value_files() > 1);
    CHECK(store.get(store.kept, "k1") == Bytes(1000, 'y'));
  }
  store.run_background();
  CHECK(store.value_files() == 1);
  // The log is not what was dropped.
  const std::string left = store.disk.find_bytes({needle});
  CHECK((left.empty() || left.find("/wal/") != std::string::npos));
}

}  // namespace
}  // namespace edgecase::engine
