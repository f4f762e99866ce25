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

}  // namespace edgecase::test
