#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "file/file_names.h"
#include "log/log_format.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

using test::RecordingObserver;

// Two namespaces on both drives, groups and large values, deletes, two flushes, and a log.
struct CheckedStore : test::EngineFixture {
  CheckedStore() {
    options.coalesce_threshold_bytes = 64;
    REQUIRE(open().ok());
    const NamespaceId plant = make_namespace("plant");
    const NamespaceId names = make_namespace("names", {Placement::Metadata, GroupCodec::Plain, 0});
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 4; ++i) {
        REQUIRE(put(plant, "k" + std::to_string(i + round), "v").ok());
        REQUIRE(put(names, "n" + std::to_string(i + round), "w").ok());
      }
      REQUIRE(put(plant, "large", Bytes(100, 'x')).ok());
      REQUIRE(engine->flush().ok());
    }
    WriteBatch batch;
    batch.put(plant, "late", "1");
    batch.remove(plant, "k0");
    REQUIRE(engine->write(batch, Durability::Sync).ok());
    close();
  }

  Result<CheckReport> check(RecordingObserver& observer) {
    return check_store(disk, options, observer);
  }
  std::vector<std::string> files() {
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : disk.durable_contents()) {
      if (!path.ends_with("LOCK")) paths.push_back(path);
    }
    return paths;
  }
};

TEST_CASE("check_store finds nothing in a whole store and says how much it saw") {
  CheckedStore store;
  RecordingObserver observer;
  const auto report = store.check(observer);
  REQUIRE(report.ok());
  CAPTURE(observer.all());
  CHECK_FALSE(observer.found_anything());
  CHECK(report->tables == 4);
  CHECK(report->value_tables == 4);
  CHECK(report->items > 4);
  CHECK(report->entries == 18);
  CHECK(report->wal_records > 0);
  CHECK(observer.done >= observer.total);
  // It left everything as it was.
  CHECK(store.open().ok());
}

TEST_CASE("check_store finds every flipped byte of every file") {
  CheckedStore store;
  for (const std::string& path : store.files()) {
    CAPTURE(path);
    const Bytes original = store.disk.contents(path);
    const bool is_wal = path.find("/wal/") != std::string::npos;
    const bool is_log = is_wal || path.find("MANIFEST") != std::string::npos;
    // Behind the last record of a log there is nothing.
    std::size_t end = original.size();
    while (is_log && end > 0 && original[end - 1] == '\0') --end;
    std::size_t unseen = 0;
    for (std::size_t byte = 0; byte < end; byte += test::share_step()) {
      CAPTURE(byte);
      // The head's zeros and old records of a slot are many; each 16th stands for all.
      if (is_log && byte % 16 != 0 && byte >= kLogHeadCopyBytes) continue;
      if (is_log && !is_wal && byte % 4096 != 0 && all_zero(ByteView(original).substr(byte, 4096)))
        continue;
      store.disk.flip_bit(path, byte, static_cast<int>(byte % 8));
      RecordingObserver observer;
      const auto report = store.check(observer);
      store.disk.flip_bit(path, byte, static_cast<int>(byte % 8));
      if (!report.ok() || observer.found_anything()) continue;
      ++unseen;
      CHECK(is_wal);
    }
    // Only of the last record of a used slot, and of slots not in use, can damage go unseen.
    if (!is_wal) CHECK(unseen == 0);
  }
  RecordingObserver observer;
  CHECK(store.check(observer).ok());
  CHECK_FALSE(observer.found_anything());
}

TEST_CASE("check_store finds every file that is missing or cut") {
  CheckedStore store;
  for (const std::string& path : store.files()) {
    CAPTURE(path);
    const Bytes original = store.disk.contents(path);
    if (path.find("/wal/") != std::string::npos) continue;
    for (const std::size_t size : {std::size_t{0}, original.size() / 2, original.size() - 1}) {
      // A manifest is zeros at its end, which nobody misses.
      if (path.find("MANIFEST") != std::string::npos && size != 0) continue;
      CAPTURE(size);
      store.disk.set_contents(path, original.substr(0, size));
      RecordingObserver observer;
      const auto report = store.check(observer);
      CHECK((!report.ok() || !observer.problems.empty()));
      store.disk.set_contents(path, original);
    }
    REQUIRE(store.disk.remove_file(path).ok());
    RecordingObserver observer;
    const auto report = store.check(observer);
    // An older version wrote no copies.
    const bool is_copy = path.ends_with(".copy");
    CHECK((!report.ok() || !observer.problems.empty()) == !is_copy);
    store.disk.set_contents(path, original);
  }
}

TEST_CASE("check_store notes files that nothing names") {
  CheckedStore store;
  store.disk.set_contents("/v/store/000000999999.val", "x");
  store.disk.set_contents("/m/store/tables/000000999998.meta", "x");
  RecordingObserver observer;
  const auto report = store.check(observer);
  REQUIRE(report.ok());
  CHECK(observer.problems.empty());
  CHECK(observer.notes.size() == 2);
}

TEST_CASE("check_store refuses what it must not touch") {
  CheckedStore store;
  RecordingObserver observer;
  SUBCASE("a store that is open") {
    REQUIRE(store.open().ok());
    CHECK(store.check(observer).status().code() == StatusCode::Locked);
  }
  SUBCASE("no store") {
    store.options.metadata_directory = "/m/none";
    store.options.values_directory = "/v/none";
    CHECK(store.check(observer).status().code() == StatusCode::NotFound);
  }
  SUBCASE("an empty values drive") {
    store.options.values_directory = "/v/none";
    CHECK(store.check(observer).status().code() == StatusCode::Unavailable);
  }
  SUBCASE("the two directories swapped") {
    std::swap(store.options.metadata_directory, store.options.values_directory);
    CHECK(store.check(observer).status().code() == StatusCode::Unavailable);
  }
  SUBCASE("the values of another store") {
    test::EngineFixture other;
    other.random = SeededRandom(99);
    other.options = store.options;
    REQUIRE(other.open().ok());
    other.close();
    store.disk.set_contents("/v/store/IDENTITY", other.disk.contents("/v/store/IDENTITY"));
    CHECK(store.check(observer).status().code() == StatusCode::Unavailable);
  }
  SUBCASE("to go on when it is told to stop") {
    observer.stop_after = 3;
    CHECK(store.check(observer).status().code() == StatusCode::Cancelled);
  }
}

}  // namespace

TEST_CASE("read_offline gives what a scan gave, of tables and of the log") {
  test::EngineFixture store;
  store.options.coalesce_threshold_bytes = 64;
  store.options.group_bytes = 128;
  REQUIRE(store.open().ok());
  const NamespaceId names =
      store.make_namespace("names", {Placement::Metadata, GroupCodec::Plain, 0});
  const NamespaceId other = store.make_namespace("other");
  SeededRandom choices(11);
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 40; ++i) {
      const Bytes key = "k" + std::to_string(choices.next() % 50);
      Bytes value = key + "-" + std::to_string(round * 100 + i);
      if (choices.next() % 4 == 0) value.resize(200, 'x');
      WriteBatch batch;
      if (choices.next() % 5 == 0) {
        batch.remove(names, key);
      } else {
        batch.put(names, key, value);
      }
      if (i == 20) batch.remove_range(names, "k1", "k12");
      if (i == 30 && round % 2 == 0) batch.erase_range(names, "k30", "k33");
      batch.put(other, key, "another's");
      REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    }
    OfflineContents wanted;
    {
      const auto scan = store.engine->scan(names, {}, {});
      REQUIRE(scan.ok());
      for (; (*scan)->valid(); (*scan)->next()) wanted.emplace((*scan)->key(), (*scan)->value());
      REQUIRE((*scan)->status().ok());
    }
    CHECK(wanted.size() > 20);
    CHECK(read_offline(store.disk, store.options, "names").status().code() == StatusCode::Locked);
    store.close();
    const auto before = store.disk.durable_contents();
    const auto read = read_offline(store.disk, store.options, "names");
    INFO(read.status().to_string());
    REQUIRE(read.ok());
    CHECK((*read == wanted));
    CHECK(read_offline(store.disk, store.options, "none").status().code() == StatusCode::NotFound);
    CHECK((store.disk.durable_contents() == before));
    REQUIRE(store.open().ok());
    if (round % 2 == 1) REQUIRE(store.engine->flush().ok());
    if (round == 3) store.executor.run_all();
  }
}

}  // namespace edgecase::engine
