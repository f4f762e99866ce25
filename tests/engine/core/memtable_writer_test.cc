// Room in the log and in memtables: within limits, in another segment where one fails, again when
// there is space.
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "engine/core/engine_fixture.h"

namespace edgecase::test {

TEST_CASE("engine keeps its write-ahead log within the limit") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  const Bytes value(10'000, 'v');
  for (int i = 0; i < 2000; ++i)
    REQUIRE(store.put(id, std::to_string(i), value, Durability::Async).ok());
  const Stats stats = store.engine->stats();
  CHECK(stats.flushes > 10);
  CHECK(stats.wal_bytes <= store.options.wal_limit_bytes);
  CHECK(store.disk.used_bytes("/m/store/wal") <= store.options.wal_limit_bytes);
  CHECK(stats.memtable_bytes <= store.options.memory_limit_bytes / 2);
  CHECK(store.get(id, "0") == value);
  store.reopen();
  CHECK(store.get(id, "1999") == value);
  CHECK(store.engine->range_stats(id, {}, {})->entries == 2000);
}

TEST_CASE("engine takes a batch larger than a segment, and then one that no limit fits") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  const Bytes large(300'000, 'L');
  for (int i = 0; i < 5; ++i) {
    REQUIRE(store.put(id, "small", "s").ok());
    REQUIRE(store.put(id, "large", large).ok());
  }
  store.reopen();
  CHECK(store.get(id, "large") == large);
  CHECK(store.put(id, "huge", Bytes(900'000, 'H')).code() == StatusCode::InvalidArgument);
  REQUIRE(store.put(id, "after", "1").ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(store.disk.used_bytes("/m/store/wal") <= store.options.wal_limit_bytes);
}

TEST_CASE("engine moves to a new segment when the log fails, and loses nothing") {
  for (const Operation operation : {Operation::LogWrite, Operation::LogSync}) {
    for (std::uint64_t nth = 1; nth <= 12; ++nth) {
      CAPTURE(static_cast<int>(operation));
      CAPTURE(nth);
      EngineFixture store;
      REQUIRE(store.open().ok());
      const NamespaceId id = store.make_namespace("default");
      REQUIRE(store.put(id, "before", "1", Durability::Async).ok());
      store.disk.fail_nth(operation, nth, EIO, FaultMode::Once, "/m");
      std::map<std::string, bool> answers;
      for (int i = 0; i < 10; ++i) {
        const std::string key = std::to_string(i);
        answers[key] =
            store.put(id, key, "v", i % 2 == 0 ? Durability::Async : Durability::Sync).ok();
        store.clock.advance(1'000'000'000);
      }
      CHECK(store.put(id, "after", "1").ok());
      const auto check = [&] {
        CHECK(store.get(id, "before") == "1");
        CHECK(store.get(id, "after") == "1");
        for (const auto& [key, ok] : answers) CHECK(store.engine->get(id, key, {}).ok() == ok);
      };
      check();
      store.close();
      store.disk.power_cut(nth, CutPolicy::None);
      store.disk.clear_faults();
      store.reopen();
      check();
    }
  }
}

TEST_CASE("engine degrades when the metadata drive fails for good, and heals by itself") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "1").ok());
  store.disk.fail_nth(Operation::LogSync, 1, EIO, FaultMode::Sticky, "/m");
  CHECK(store.put(id, "b", "2").code() == StatusCode::IoError);
  CHECK(store.put(id, "c", "3", Durability::Async).code() == StatusCode::IoError);
  CHECK(store.get(id, "a") == "1");
  CHECK(store.engine->get(id, "b", {}).status().code() == StatusCode::NotFound);
  CHECK_FALSE(store.engine->stats().metadata.degraded.ok());
  CHECK(store.listener.degraded.size() == 1);

  store.disk.clear_faults();
  store.clock.advance(20'000'000'000);
  store.executor.advance(20'000'000'000);
  store.executor.run_all();
  CHECK(store.engine->stats().metadata.degraded.ok());
  CHECK(store.listener.resumed == std::vector<std::string>{"metadata"});
  CHECK(store.put(id, "d", "4").ok());
  store.close();
  store.disk.power_cut(1, CutPolicy::None);
  store.reopen();
  CHECK(store.get(id, "a") == "1");
  CHECK(store.get(id, "d") == "4");
  CHECK(store.engine->get(id, "b", {}).status().code() == StatusCode::NotFound);
}

TEST_CASE("engine writes its log within a second of there being space, whenever that is") {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "1").ok());
  store.disk.set_capacity("/m", store.disk.used_bytes("/m"));
  Status refused;
  for (int i = 0; i < 10'000 && refused.ok(); ++i)
    refused = store.put(id, "b" + std::to_string(i), Bytes(1000, 'v'));
  CHECK(refused.code() == StatusCode::OutOfSpace);
  CHECK(store.engine->stats().refused.code() == StatusCode::OutOfSpace);
  for (int second = 0; second < 100; ++second) {
    store.clock.advance(kSecondNs);
    store.executor.advance(kSecondNs);
    store.executor.run_all();
    CHECK(store.put(id, "c", Bytes(1000, 'v')).code() == StatusCode::OutOfSpace);
  }
  store.disk.set_capacity("/m", 0);
  store.clock.advance(kSecondNs);
  CHECK(store.put(id, "c", "3").ok());
  CHECK(store.engine->stats().refused.ok());
  CHECK(store.get(id, "a") == "1");
}

}  // namespace edgecase::test
