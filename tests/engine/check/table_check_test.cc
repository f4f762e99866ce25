// Tables are checked whole: each item by its record, each record by its item.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/coding.h"
#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_table.h"

namespace edgecase::engine {
namespace {

using test::RecordingObserver;

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

TEST_CASE("a table check names file and place of a damaged item, and the record that needs it") {
  SummarizedStore store;
  std::string path;
  for (const auto& [each, bytes] : store.disk.durable_contents())
    if (each.ends_with(".val")) path = each;
  store.disk.flip_bit(path, 100, 0);
  const std::string found = store.found();
  CAPTURE(found);
  CHECK(found.find(path + ": wrong checksum of the whole file") != std::string::npos);
  CHECK(found.find(path + " at byte 96: wrong checksum of an item (" + store.table_path()) !=
        std::string::npos);
}

TEST_CASE("a table check compares what is known of numbers with the numbers") {
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
