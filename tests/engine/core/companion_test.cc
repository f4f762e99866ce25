// What the companion of commits adds: with the group, in its sync, or not at all.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "edgecase/engine.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"

namespace edgecase::test {
namespace {

class Scribe final : public CommitCompanion {
 public:
  void add_to(WriteBatch& batch) override {
    if (!pending.empty()) batch.put(id, pending, "noted");
  }
  void committed(const Status& status) override {
    outcomes.push_back(status);
    if (status.ok()) pending.clear();
  }

  NamespaceId id = 0;
  std::string pending;
  std::vector<Status> outcomes;
};

struct Store {
  Store() {
    options.metadata_directory = "/m/store";
    options.values_directory = "/v/store";
    open();
  }
  void open() {
    engine.reset();
    auto opened = Engine::open(options, environment);
    REQUIRE_MESSAGE(opened.ok(), opened.status().to_string());
    engine = std::move(opened).value();
    const auto found = engine->find_namespace("n");
    id = found.ok() ? found->id : *engine->create_namespace("n", {});
  }
  bool has(const std::string& key) const { return engine->get(id, key, {}).ok(); }

  MemoryFileSystem drive{{"/m", "/v"}};
  ManualClock clock;
  SeededRandom random{7};
  ManualExecutor executor;
  EventListener listener;
  Environment environment{drive, clock, random, executor, listener};
  Options options;
  std::unique_ptr<Engine> engine;
  NamespaceId id = 0;
};

}  // namespace

TEST_CASE(
    "a companion's entries share a record of the log with a small batch, not with a large one") {
  struct Case {
    std::size_t value_bytes;
    std::uint64_t writes;
  };
  for (const Case& c : {Case{100, 1}, Case{16u << 10, 2}}) {
    CAPTURE(c.value_bytes);
    Store store;
    Scribe scribe;
    scribe.id = store.id;
    store.engine->set_commit_companion(&scribe);
    WriteBatch batch;
    batch.put(store.id, "first", "begins a segment");
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    batch.clear();
    const std::string value(c.value_bytes, 'v');
    batch.put(store.id, "a", value);
    batch.put(store.id, "b", value.substr(0, 10));
    scribe.pending = "note a";
    const std::uint64_t writes = store.drive.operations(Operation::LogWrite);
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    CHECK(store.drive.operations(Operation::LogWrite) == writes + c.writes);
    store.engine->set_commit_companion(nullptr);
    store.open();
    CHECK(store.engine->get(store.id, "a", {}).value() == value);
    CHECK(store.engine->get(store.id, "b", {}).value() == value.substr(0, 10));
    CHECK(store.engine->get(store.id, "note a", {}).value() == "noted");
  }
}

TEST_CASE("a companion's entries come with the next group and share its sync") {
  Store store;
  Scribe scribe;
  scribe.id = store.id;
  store.engine->set_commit_companion(&scribe);
  WriteBatch batch;
  batch.put(store.id, "a", "1");
  scribe.pending = "note a";
  const std::uint64_t syncs = store.engine->stats().wal_syncs;
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  CHECK(store.engine->stats().wal_syncs == syncs + 1);
  REQUIRE(scribe.outcomes.size() == 1);
  CHECK(scribe.outcomes[0].ok());
  CHECK(store.has("a"));
  CHECK(store.has("note a"));
  SUBCASE("nothing to add: it is not told of any outcome") {
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    CHECK(scribe.outcomes.size() == 1);
  }
  SUBCASE("an empty batch brings it alone") {
    scribe.pending = "note b";
    REQUIRE(store.engine->write(WriteBatch(), Durability::Sync).ok());
    CHECK(scribe.outcomes.size() == 2);
    store.engine->set_commit_companion(nullptr);
    store.open();
    CHECK(store.has("note a"));
    CHECK(store.has("note b"));
  }
  SUBCASE("entries that are refused cost the group nothing") {
    scribe.id = store.id + 100;
    scribe.pending = "note c";
    batch.put(store.id, "c", "1");
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    REQUIRE(scribe.outcomes.size() == 2);
    CHECK(scribe.outcomes[1].code() == StatusCode::InvalidArgument);
    CHECK(store.has("c"));
  }
  SUBCASE("without it, nobody is asked") {
    store.engine->set_commit_companion(nullptr);
    scribe.pending = "note d";
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    CHECK_FALSE(store.has("note d"));
  }
  if (store.engine) store.engine->set_commit_companion(nullptr);
}

}  // namespace edgecase::test
