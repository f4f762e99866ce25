#include <doctest/doctest.h>

#include "edgecase/store_check.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {

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
