#include "engine/core/engine_fixture.h"

namespace edgecase::test {
namespace {

std::uint64_t hits_of(const ReadStats& reads) {
  std::uint64_t hits = reads.memtable_hits;
  for (const std::uint64_t each : reads.level_hits) hits += each;
  return hits;
}

}  // namespace

TEST_CASE("read stats: what answers a lookup is counted, deletes too") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "1").ok());
  store.get(id, "a");
  store.get(id, "b");
  CHECK(store.engine->stats().reads.gets == 2);
  CHECK(store.engine->stats().reads.memtable_hits == 1);
  WriteBatch batch;
  batch.remove(id, "b");
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  store.get(id, "b");
  CHECK(store.engine->stats().reads.memtable_hits == 2);

  REQUIRE(store.engine->flush().ok());
  CHECK(store.get(id, "a") == "1");
  ReadStats reads = store.engine->stats().reads;
  CHECK(reads.memtable_hits == 2);
  CHECK(reads.level_hits[0] == 1);
  CHECK(reads.metadata_block_loads > 0);
  CHECK(reads.value_reads == 1);

  REQUIRE(store.engine->compact({id}, {}).ok());
  CHECK(store.get(id, "a") == "1");
  reads = store.engine->stats().reads;
  CHECK(reads.level_hits[0] == 1);
  CHECK(hits_of(reads) == 4);
  CHECK(reads.gets == 5);
}

TEST_CASE("read stats: a namespace's bounds rule out tables of level 0 without a read") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId first = store.make_namespace("first");
  const NamespaceId second = store.make_namespace("second");
  const NamespaceId third = store.make_namespace("third");
  REQUIRE(store.put(first, "m", "1").ok());
  REQUIRE(store.put(third, "m", "3").ok());
  REQUIRE(store.engine->flush().ok());
  store.reopen();
  // The table's keys go from the first namespace to the third: all of these lie among them.
  store.get(second, "m");
  store.get(first, "n");
  store.get(third, "l");
  const ReadStats reads = store.engine->stats().reads;
  CHECK(reads.level0_skips == 3);
  CHECK(reads.metadata_block_loads == 0);
  CHECK(store.get(first, "m") == "1");
  CHECK(store.get(third, "m") == "3");
  CHECK(store.engine->stats().reads.level0_skips == 3);
  CHECK(store.engine->stats().reads.level_hits[0] == 2);
}

}  // namespace edgecase::test
