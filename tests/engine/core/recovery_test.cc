// What a store is after a crash, on other drives, and with damage.
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "engine/core/engine_fixture.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

using namespace edgecase::engine;

// A short life of a store: batches of two keys each, with flushes and namespaces in between. Notes
// what was acknowledged; stops at the first failure.
struct Life {
  int issued = 0;        // batches handed in
  int acknowledged = 0;  // of them, with Sync
  bool has_namespace = false;
};

constexpr int kRecoveredBatches = 24;

WriteBatch batch_number(NamespaceId id, int i) {
  WriteBatch batch;
  batch.put(id, "first" + std::to_string(i), Bytes(static_cast<std::size_t>(i) * 30, 'a'));
  batch.put(id, "last", std::to_string(i));
  return batch;
}

Life live(EngineFixture& store) {
  Life life;
  if (!store.open().ok()) return life;
  auto id = store.engine->find_namespace("default");
  if (!id.ok()) {
    const auto made = store.engine->create_namespace("default", {});
    if (!made.ok()) return life;
  }
  life.has_namespace = true;
  for (int i = 1; i <= kRecoveredBatches; ++i) {
    ++life.issued;
    const bool sync = i % 3 != 0;
    const Status written =
        store.engine->write(batch_number(1, i), sync ? Durability::Sync : Durability::Async);
    if (!written.ok()) return life;
    if (sync) life.acknowledged = i;
    if (i % 7 == 0 && !store.engine->flush().ok()) return life;
    if (i % 5 == 0) store.executor.run_all();
  }
  return life;
}

// Everything acknowledged is there, batches are whole, and what is there is a prefix.
void check_survivors(EngineFixture& store, const Life& life) {
  const Status opened = store.open();
  INFO(opened.to_string());
  REQUIRE(opened.ok());
  const auto id = store.engine->find_namespace("default");
  if (life.has_namespace) REQUIRE(id.ok());
  if (!id.ok()) return;
  int present = 0;
  for (int i = 1; i <= kRecoveredBatches; ++i) {
    if (store.engine->get(1, "first" + std::to_string(i), {}).ok()) present = i;
  }
  CHECK(present >= life.acknowledged);
  CHECK(present <= life.issued);
  for (int i = 1; i <= present; ++i) {
    CHECK(store.get(1, "first" + std::to_string(i)) ==
          Bytes(static_cast<std::size_t>(i) * 30, 'a'));
  }
  if (present > 0) CHECK(store.get(1, "last") == std::to_string(present));
  CHECK(store.engine->range_stats(1, {}, {})->entries ==
        static_cast<std::uint64_t>(present == 0 ? 0 : present + 1));
  // And it takes writes again.
  CHECK(store.put(1, "again", "yes").ok());
  CHECK(store.engine->flush().ok());
  CHECK(store.get(1, "again") == "yes");
}

std::uint64_t operations_of_a_life() {
  EngineFixture store;
  const Life life = live(store);
  REQUIRE(life.issued == kRecoveredBatches);
  return store.disk.operations();
}

}  // namespace

TEST_CASE("engine survives a power cut at every operation, whatever the drives keep") {
  const std::uint64_t operations = operations_of_a_life();
  MESSAGE(operations << " operations");
  std::uint64_t first = 0;  // another one for each policy, where not all of them are tried
  for (const CutPolicy policy : {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All,
                                 CutPolicy::Sectors, CutPolicy::Torn, CutPolicy::Any}) {
    first = first % share_step() + 1;
    for (std::uint64_t at = first; at <= operations; at += share_step()) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(at);
      EngineFixture store;
      store.disk.stop_at(at);
      const Life life = live(store);
      store.close();
      store.disk.power_cut(at, policy);
      check_survivors(store, life);
    }
  }
}

TEST_CASE("engine survives a second power cut during recovery") {
  SeededRandom random(7);
  const std::uint64_t operations = operations_of_a_life();
  for (std::uint64_t round = share_of(150); round > 0; --round) {
    const std::uint64_t first = 1 + random.below(operations);
    const std::uint64_t second = 1 + random.below(60);
    CAPTURE(first);
    CAPTURE(second);
    EngineFixture store;
    store.disk.stop_at(first);
    const Life life = live(store);
    store.close();
    store.disk.power_cut(random.next(), CutPolicy::Any);
    store.disk.stop_at(second);
    if (store.open().ok() && life.has_namespace)
      static_cast<void>(store.put(1, "between", "x", Durability::Sync).ok());
    store.close();
    store.disk.power_cut(random.next(), CutPolicy::Any);
    REQUIRE(store.open().ok());
    if (life.acknowledged > 0) {
      for (int i = 1; i <= life.acknowledged; ++i)
        CHECK(store.engine->get(1, "first" + std::to_string(i), {}).ok());
    }
  }
}

TEST_CASE("engine keeps unsynced writes over kill -9") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  for (int i = 0; i < 2000; ++i)
    REQUIRE(store.put(id, std::to_string(i), Bytes(100, 'v'), Durability::Async).ok());
  store.disk.kill_process(3);
  store.reopen();
  CHECK(store.engine->range_stats(id, {}, {})->entries == 2000);
  // What the first process left in the page cache is durable before the second builds on it.
  REQUIRE(store.put(id, "synced", "1").ok());
  store.close();
  store.disk.power_cut(4, CutPolicy::None);
  store.reopen();
  CHECK(store.engine->range_stats(id, {}, {})->entries == 2001);
}

TEST_CASE(
    "engine keeps unsynced writes over kill -9 when the log's next segment was not finished") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "old", "1").ok());
  // Everything so far is in tables, and the segment at hand holds no record.
  WriteBatch erased;
  erased.erase_range(id, "old", "old1");
  REQUIRE(store.engine->write(erased, Durability::Async).ok());
  REQUIRE(store.engine->erase().ok());
  REQUIRE(store.put(id, "kept", "2", Durability::Async).ok());
  // The write fails; of the segment that replaces this one the head is written, not the copies.
  store.disk.fail_nth(Operation::LogWrite, 1, EIO, FaultMode::Once, "/m");
  store.disk.fail_nth(Operation::LogWrite, 3, EIO, FaultMode::Sticky, "/m");
  store.disk.fail_nth(Operation::Remove, 1, EIO, FaultMode::Sticky, "/m");
  CHECK(store.put(id, "refused", "3", Durability::Async).code() == StatusCode::IoError);
  CHECK(store.disk.faults() == 3);
  store.disk.kill_process(7);
  store.disk.clear_faults();
  store.reopen();
  CHECK(store.get(id, "kept") == "2");
  CHECK(store.engine->get(id, "refused", {}).status().code() == StatusCode::NotFound);
  store.reopen();
  CHECK(store.get(id, "kept") == "2");
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

TEST_CASE("engine removes what no manifest names, and only that") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "1").ok());
  REQUIRE(store.engine->flush().ok());
  store.close();
  store.disk.set_contents("/v/store/000000099999.val", "orphan");
  store.disk.set_contents("/m/store/tables/000000099998.meta", "orphan");
  store.disk.set_contents("/m/store/MANIFEST-000000000099", "orphan");
  store.disk.set_contents("/v/store/holiday.jpg", "not ours");
  store.reopen();
  // A store that was large does not wait for what is left to be overwritten.
  CHECK(store.disk.exists("/v/store/000000099999.val"));
  store.executor.run_all();
  CHECK_FALSE(store.disk.exists("/v/store/000000099999.val"));
  CHECK_FALSE(store.disk.exists("/m/store/tables/000000099998.meta"));
  CHECK_FALSE(store.disk.exists("/m/store/MANIFEST-000000000099"));
  CHECK(store.disk.exists("/v/store/holiday.jpg"));
  CHECK(store.get(id, "a") == "1");
}

}  // namespace edgecase::test
