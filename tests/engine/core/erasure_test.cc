// Erased ranges: what they hide, how long they are pending, where their bytes are.
#include <doctest/doctest.h>

#include "engine/core/engine_fixture.h"

namespace edgecase::engine {
namespace {

struct ErasingStore : test::EngineFixture {
  ErasingStore() {
    options.coalesce_threshold_bytes = 64;
    options.group_bytes = 256;
    REQUIRE(open().ok());
    id = make_namespace("plant");
    other = make_namespace("other");
  }
  Status erase_range(ByteView lower, ByteView upper) {
    WriteBatch batch;
    batch.erase_range(id, lower, upper);
    return engine->write(batch, Durability::Sync);
  }
  void fill(const std::string& value) {
    for (int i = 10; i < 100; ++i) {
      REQUIRE(put(id, "k" + std::to_string(i), value).ok());
      REQUIRE(put(other, "k" + std::to_string(i), value).ok());
    }
  }
  std::uint64_t count(NamespaceId of, const std::shared_ptr<const Snapshot>& snapshot = nullptr) {
    ReadOptions read;
    read.snapshot = snapshot;
    std::uint64_t scanned = 0;
    auto scan = engine->scan(of, {}, read);
    REQUIRE(scan.ok());
    for (; (*scan)->valid(); (*scan)->next()) ++scanned;
    CHECK(engine->range_stats(of, {}, read)->entries == scanned);
    return scanned;
  }

  NamespaceId id = 0;
  NamespaceId other = 0;
};

TEST_CASE("what is erased no snapshot shows, wherever it lies") {
  for (const int flushed : {0, 1, 2}) {
    CAPTURE(flushed);
    ErasingStore store;
    store.fill("1");
    if (flushed >= 1) REQUIRE(store.engine->flush().ok());
    const auto before = store.engine->snapshot();
    REQUIRE(store.erase_range("k20", "k90").ok());
    REQUIRE(store.put(store.id, "k50", "2").ok());
    if (flushed == 2) REQUIRE(store.engine->flush().ok());
    ReadOptions read;
    read.snapshot = before;
    CHECK(store.engine->get(store.id, "k50", read).status().code() == StatusCode::NotFound);
    CHECK(store.engine->get(store.id, "k19", read).ok());
    CHECK(store.get(store.id, "k50") == "2");
    CHECK(store.count(store.id, before) == 20);
    CHECK(store.count(store.other, before) == 90);
    CHECK(store.count(store.id) == 21);
    CHECK(store.engine->stats().erasure.pending_ranges == 1);
  }
}

TEST_CASE("an erased range is pending until erase() has removed it, after a restart, too") {
  ErasingStore store;
  store.fill("1");
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.erase_range("k20", "k90").ok());
  CHECK(store.engine->stats().erasure.pending_ranges == 1);
  store.reopen();
  CHECK(store.engine->stats().erasure.pending_ranges == 1);
  REQUIRE(store.engine->flush().ok());
  store.reopen();
  CHECK(store.engine->stats().erasure.pending_ranges == 1);
  const auto report = store.engine->erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  CHECK(report->ranges == 1);
  CHECK(store.engine->stats().erasure.pending_ranges == 0);
  CHECK(store.engine->locate(store.id, {"k20", "k90"})->empty());
  CHECK_FALSE(store.engine->locate(store.id, {"k90", {}})->empty());
  CHECK(store.count(store.id) == 20);
  store.reopen();
  CHECK(store.engine->stats().erasure.pending_ranges == 0);
  CHECK(store.count(store.id) == 20);
}

TEST_CASE("a range is found in the log, then in tables of both layers") {
  ErasingStore store;
  store.fill(Bytes(100, 'v'));
  auto files = store.engine->locate(store.id, {"k20", "k30"});
  REQUIRE(files.ok());
  REQUIRE_FALSE(files->empty());
  for (const FileShare& file : *files) CHECK(file.layer == FileLayer::Log);
  REQUIRE(store.engine->flush().ok());
  files = store.engine->locate(store.id, {"k20", "k30"});
  REQUIRE(files.ok());
  REQUIRE(files->size() == 2);
  CHECK((*files)[0].layer == FileLayer::Values);
  CHECK((*files)[0].bytes >= 1000);
  CHECK((*files)[0].bytes <= (*files)[0].file_bytes);
  CHECK((*files)[1].layer == FileLayer::Metadata);
  CHECK(store.disk.exists((*files)[0].path));
  CHECK(store.disk.exists((*files)[1].path));
  CHECK(store.engine->locate(store.id, {"x", {}})->empty());
}

}  // namespace
}  // namespace edgecase::engine
