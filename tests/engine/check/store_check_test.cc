#include "edgecase/store_check.h"

#include <doctest/doctest.h>

#include <functional>

#include "base/coding.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "file/file_names.h"
#include "log/log_format.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_table.h"
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

TEST_CASE("check_store names file and place of a damaged item, and the record that needs it") {
  CheckedStore store;
  for (const auto& [path, bytes] : store.disk.durable_contents()) {
    if (!path.starts_with("/v/") || !path.ends_with(".val")) continue;
    store.disk.flip_bit(path, 100, 0);
    RecordingObserver observer;
    REQUIRE(store.check(observer).ok());
    CAPTURE(observer.all());
    CHECK(observer.all().find(path + ": wrong checksum of the whole file") != std::string::npos);
    CHECK(observer.all().find(path + " at byte 96: wrong checksum of an item (/m/store/tables/") !=
          std::string::npos);
    store.disk.flip_bit(path, 100, 0);
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

// Numbers of two series, one group each, and where a record's summary lies.
struct SummarizedStore : test::EngineFixture {
  SummarizedStore() {
    REQUIRE(open().ok());
    const NamespaceId id = make_namespace("plant", {Placement::Values, GroupCodec::Series, 1});
    WriteBatch batch;
    for (const char series : {'a', 'b'})
      for (std::uint64_t i = 0; i < 100; ++i) {
        Bytes key(1, series);
        key.resize(1 + sizeof i);
        store_ordinal(key.data() + 1, i);
        Bytes value(1, kIntegerTag);
        append_fixed64(value, i);
        batch.put(id, key, value);
      }
    REQUIRE(engine->write(batch, Durability::Sync).ok());
    REQUIRE(engine->flush().ok());
    close();
  }
  std::string table_path() {
    std::string path;
    for (const auto& [each, bytes] : disk.durable_contents())
      if (each.ends_with(".meta")) path = each;
    return path;
  }
  // Writes the one metadata table again, with what `change` makes of each record.
  void rewrite(const std::function<void(UMetaRecord&)>& change) {
    const std::string path = table_path();
    const auto reader = UMetaReader::open_any(*disk.open_file(path));
    REQUIRE(reader.ok());
    auto writer = UMetaWriter::create(disk, "/m/other", (*reader)->identity(), nullptr);
    REQUIRE(writer.ok());
    for (std::size_t i = 0; i < (*reader)->blocks().size(); ++i) {
      UMetaCursor records;
      records.open(*(*reader)->read_block(i));
      while (records.next()) {
        UMetaRecord record = records.record();
        change(record);
        REQUIRE((*writer)->add(record).ok());
      }
    }
    REQUIRE((*writer)->finish().ok());
    disk.set_contents(path, disk.contents("/m/other"));
    REQUIRE(disk.remove_file("/m/other").ok());
  }
  std::string found() {
    RecordingObserver observer;
    REQUIRE(check_store(disk, options, observer).ok());
    return observer.all();
  }
};

TEST_CASE("check_store compares what is known of numbers with the numbers") {
  const char* const told = "the summary of its numbers is not what the item holds";
  SummarizedStore store;
  CHECK(store.found().find(told) == std::string::npos);
  Bytes other;
  const std::vector<std::uint64_t> numbers(100, 7);
  append_number_summary(other, NumberType::Integer, numbers);
  store.rewrite([&](UMetaRecord& record) {
    REQUIRE_FALSE(record.numbers.empty());
    record.numbers = other;
  });
  CHECK(store.found().find(told) != std::string::npos);
  store.rewrite([&](UMetaRecord& record) { record.numbers = "nonsense"; });
  CHECK(store.found().find(told) != std::string::npos);
  // Nothing of that sort where there is none, as in tables of before.
  store.rewrite([&](UMetaRecord& record) { record.numbers = {}; });
  CHECK(store.found().find(told) == std::string::npos);
}

TEST_CASE("repair_store makes summaries of numbers anew") {
  SummarizedStore store;
  const std::string path = store.table_path();
  Bytes before;
  store.rewrite([&](UMetaRecord& record) { before.append(record.numbers); });
  REQUIRE(store.disk.remove_file(path).ok());
  RecordingObserver observer;
  REQUIRE(repair_store(store.disk, store.options, observer).ok());
  Bytes after;
  store.rewrite([&](UMetaRecord& record) { after.append(record.numbers); });
  CHECK_FALSE(before.empty());
  CHECK(after == before);
}

}  // namespace
}  // namespace edgecase::engine
