// Files that name a namespace with a number beyond all there are (kNamespaceIdMax): taken for what
// they say, a repair would make a store that takes a minute and a gigabyte to open, or none.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "file/file_names.h"
#include "log/log.h"
#include "support/memory_file_system.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

constexpr NamespaceId kBeyond = kNamespaceIdMax + 1;

// A store whose log ends with a write to `last`.
struct LoggedStore : test::EngineFixture {
  explicit LoggedStore(NamespaceId last) {
    REQUIRE(open().ok());
    plant = make_namespace("plant", {});
    for (const char* key : {"key-a", "key-b", "key-c"}) REQUIRE(put(plant, key, "1").ok());
    close();
    const std::string path = last_segment();
    Segment segment = read(path);
    WriteBatch batch;
    batch.put(last, "d", "1");
    segment.payloads.emplace_back(batch.encoded());
    write(path, segment);
  }

  struct Segment {
    LogIdentity identity;
    std::uint64_t first = 0;
    std::vector<Bytes> payloads;  // of one entry each
  };
  std::string last_segment() const {
    std::string found;
    for (const auto& [path, bytes] : disk.durable_contents()) {
      if (path.starts_with("/m/store/wal/") && Bytes(bytes).find("key-c") != Bytes::npos)
        found = path;
    }
    return found;
  }
  Segment read(const std::string& path) {
    auto file = disk.open_file(path);
    REQUIRE(file.ok());
    const auto reader = LogReader::open(std::move(file).value());
    REQUIRE(reader.ok());
    Segment segment;
    segment.identity = (*reader)->identity();
    while (true) {
      const auto record = (*reader)->next();
      REQUIRE(record.ok());
      if (!*record) return segment;
      if (segment.payloads.empty()) segment.first = (*record)->sequence;
      segment.payloads.emplace_back((*record)->payload);
    }
  }
  void write(const std::string& path, const Segment& segment) {
    auto file = disk.open_log_file(path);
    REQUIRE(file.ok());
    const auto writer = LogWriter::create(std::move(file).value(), segment.identity);
    REQUIRE(writer.ok());
    for (std::size_t i = 0; i < segment.payloads.size(); ++i) {
      const ByteView part = segment.payloads[i];
      REQUIRE((*writer)->append(segment.first + i, {&part, 1}).ok());
    }
    REQUIRE((*writer)->sync().ok());
  }

  NamespaceId plant = 0;
};

}  // namespace

TEST_CASE("a log that names a namespace that cannot be is refused, and repaired without it") {
  for (const NamespaceId number : {kBeyond, NamespaceId{0xffffffff}, NamespaceId{0}}) {
    CAPTURE(number);
    LoggedStore store(number);
    CHECK(store.open().code() == StatusCode::Corruption);
    test::RecordingObserver found;
    const auto checked = check_store(store.disk, store.options, found);
    REQUIRE(checked.ok());
    CHECK(checked->problems == 1);
    test::RecordingObserver observer;
    const auto repaired = repair_store(store.disk, store.options, observer);
    INFO(repaired.status().to_string());
    REQUIRE(repaired.ok());
    CAPTURE(observer.all());
    REQUIRE(observer.losses.size() == 1);
    CHECK(observer.losses.front().find("a namespace that cannot be") != std::string::npos);
    store.reopen();
    for (const char* key : {"key-a", "key-b", "key-c"}) CHECK(store.get(store.plant, key) == "1");
    CHECK(store.make_namespace("next", {}) < 100);
  }
}

TEST_CASE("a log that names the last namespace there can be is repaired with it") {
  LoggedStore store(kNamespaceIdMax);
  CHECK(store.open().code() == StatusCode::Corruption);  // the manifest knows of none
  test::RecordingObserver observer;
  const auto repaired = repair_store(store.disk, store.options, observer);
  INFO(repaired.status().to_string());
  REQUIRE(repaired.ok());
  store.reopen();
  CHECK(store.get(store.plant, "key-c") == "1");
  CHECK(store.get(kNamespaceIdMax, "d") == "1");
}

TEST_CASE("a value table of a namespace that cannot be is damaged") {
  struct Case {
    NamespaceId number;
    bool can_be;
  };
  for (const Case& c : {Case{0, false}, Case{1, true}, Case{kNamespaceIdMax, true},
                        Case{kBeyond, false}, Case{0xffffffff, false}}) {
    CAPTURE(c.number);
    test::MemoryFileSystem disk({"/m"});
    ValueTableHead head;
    head.identity = {{1}, 7};
    head.namespace_id = c.number;
    const auto writer = ValueTableWriter::create(disk, "/m/table", head);
    REQUIRE(writer.ok());
    const Bytes key = make_full_key(c.number, "device");
    REQUIRE((*writer)->append_single({key, 5, EntryKind::Put, "value"}).ok());
    REQUIRE((*writer)->finish().ok());
    auto file = disk.open_file("/m/table");
    REQUIRE(file.ok());
    const auto opened = ValueTableReader::open(std::move(file).value(), {1}, 7);
    CAPTURE(opened.status().to_string());
    CHECK(opened.ok() == c.can_be);
    if (c.can_be) continue;
    CHECK(opened.status().code() == StatusCode::Corruption);
    CHECK(opened.status().message().find("a namespace that cannot be") != std::string::npos);
  }
}

}  // namespace edgecase::engine
