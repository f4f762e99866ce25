// Flushes: many, tried again where a drive fails, and only into drives that are the store's.
#include <cerrno>
#include <string>
#include <vector>

#include "engine/core/engine_fixture.h"

namespace edgecase::test {

TEST_CASE("engine reads rightly over hundreds of flushes") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  for (int i = 0; i < 300; ++i) {
    REQUIRE(store.put(id, "shared", std::to_string(i), Durability::Async).ok());
    REQUIRE(store.put(id, "key" + std::to_string(i % 100), std::to_string(i)).ok());
    REQUIRE(store.engine->flush().ok());
  }
  CHECK(store.get(id, "shared") == "299");
  CHECK(store.get(id, "key7") == "207");
  CHECK(store.engine->range_stats(id, {}, {})->entries == 101);
  store.reopen();
  CHECK(store.get(id, "shared") == "299");
  CHECK(store.get(id, "key99") == "299");
  CHECK(store.listener.recoveries.back().tables == 300);
  CHECK(store.listener.recoveries.back().wal_records <= 2);
}

TEST_CASE("engine takes writes while the values drive is gone, until the log is full") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "1").ok());
  REQUIRE(store.engine->flush().ok());
  store.disk.set_gone("/v", true);
  int taken = 0;
  Status refused;
  for (; taken < 10'000 && refused.ok(); ++taken) {
    refused = store.put(id, std::to_string(taken), Bytes(1000, 'v'), Durability::Async);
    store.executor.run_all();
  }
  CHECK(refused.code() == StatusCode::Busy);
  CHECK(taken > 900);
  CHECK(store.engine->stats().refused.code() == StatusCode::Busy);
  CHECK_FALSE(store.engine->flush().ok());
  CHECK_FALSE(store.engine->stats().values.degraded.ok());
  CHECK(store.engine->stats().metadata.degraded.ok());
  CHECK(store.get(id, "0") == Bytes(1000, 'v'));
  CHECK(store.engine->get(id, "zzz", {}).status().code() == StatusCode::NotFound);

  store.disk.set_gone("/v", false);
  store.executor.advance(20'000'000'000);
  store.executor.run_all();
  CHECK(store.engine->stats().values.degraded.ok());
  CHECK(store.engine->stats().refused.ok());
  CHECK(store.listener.resumed == std::vector<std::string>{"values"});
  CHECK(store.put(id, "b", "2").ok());
  CHECK(store.get(id, "a") == "1");
  store.reopen();
  CHECK(store.engine->range_stats(id, {}, {})->entries == static_cast<std::uint64_t>(taken) + 1);
}

TEST_CASE("engine tells which drive failed, with errno and file, wherever the directories lie") {
  struct Case {
    const char* metadata;
    const char* values;
    std::uint64_t nth;  // file that a flush makes, whose creation fails
    Drive want;
  };
  for (const Case& c : {Case{"/m/store", "/v/store", 1, Drive::Values},
                        Case{"/m/store", "/v/store", 2, Drive::Metadata},
                        Case{"/m/limits.d", "/m/limits.d/values", 1, Drive::Values},
                        Case{"/m/limits.d", "/m/limits.d/values", 2, Drive::Metadata},
                        Case{"/v/s", "/v/s-values", 2, Drive::Metadata}}) {
    CAPTURE(c.metadata);
    CAPTURE(c.values);
    CAPTURE(c.nth);
    EngineFixture store;
    store.options.metadata_directory = c.metadata;
    store.options.values_directory = c.values;
    REQUIRE(store.open().ok());
    const NamespaceId id = store.make_namespace("default");
    REQUIRE(store.put(id, "a", "1").ok());
    store.disk.fail_nth(Operation::CreateFile, c.nth, EROFS, FaultMode::Sticky);
    const Status failed = store.engine->flush();
    const bool is_of_values = c.want == Drive::Values;
    CHECK(failed.drive() == c.want);
    CHECK(failed.system_error() == EROFS);
    CHECK(failed.file().starts_with(is_of_values ? c.values : c.metadata));
    CHECK(store.engine->stats().values.degraded.ok() == !is_of_values);
    CHECK(store.engine->stats().metadata.degraded.ok() == is_of_values);
    // What a writer that waits is told keeps the facts.
    Status refused;
    for (int i = 0; i < 10'000 && refused.ok(); ++i)
      refused = store.put(id, std::to_string(i), Bytes(1000, 'v'), Durability::Async);
    CHECK(refused.code() == StatusCode::Busy);
    // The first file of the next attempt is one of values, whichever it was before.
    CHECK(refused.drive() == Drive::Values);
    CHECK(refused.system_error() == EROFS);
  }
}

TEST_CASE("engine fills no drive that is not its own") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "1").ok());
  const Bytes identity = store.disk.contents("/v/store/IDENTITY");
  for (const char* name : {"IDENTITY", "IDENTITY.copy"})  // as if unmounted
    REQUIRE(store.disk.remove_file(std::string("/v/store/") + name).ok());
  const Status flushed = store.engine->flush();
  CHECK(flushed.code() == StatusCode::Unavailable);
  store.disk.set_contents("/v/store/IDENTITY", identity);
  CHECK(store.engine->flush().ok());
}

}  // namespace edgecase::test
