// Commits: what their companion adds, with the group, in its sync, or not at all; refusals; and
// real threads on the machine's own files. Run it under the thread sanitizer.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "edgecase/engine.h"
#include "engine/core/engine_fixture.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"

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

// Writers, readers, flushes and merges side by side.
namespace {

constexpr int kWriters = 3;
constexpr int kBatches = 400;

std::string key_of(int writer, int i) {
  return "w" + std::to_string(writer) + "/" + std::to_string(100000 + i);
}

}  // namespace

TEST_CASE("engine writers, readers, flushes and compactions run side by side") {
  TempDirectory directory;
  Options options;
  options.metadata_directory = directory / "metadata";
  options.values_directory = directory / "values";
  options.memory_limit_bytes = 8u << 20;
  options.memtable_bytes = 64u << 10;
  options.wal_segment_bytes = 64u << 10;
  options.wal_limit_bytes = 1u << 20;
  const auto executor = make_thread_executor();
  EventListener listener;
  const Environment environment{posix_file_system(), system_clock(), system_random(), *executor,
                                listener};
  auto opened = Engine::open(options, environment);
  INFO(opened.status().to_string());
  REQUIRE(opened.ok());
  std::unique_ptr<Engine> engine = std::move(opened).value();
  const NamespaceId id = *engine->create_namespace("default", {});

  std::atomic<int> failures{0};
  std::atomic<int> acknowledged[kWriters] = {};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < kBatches; ++i) {
        WriteBatch batch;
        batch.put(id, key_of(writer, i), Bytes(200, static_cast<char>('a' + i % 26)));
        batch.put(id, "count" + std::to_string(writer), std::to_string(i));
        const bool sync = i % 4 == 0;
        if (!engine->write(batch, sync ? Durability::Sync : Durability::Async).ok()) ++failures;
        acknowledged[writer].store(i + 1);
      }
    });
  }
  threads.emplace_back([&] {  // a batch is seen whole, and what was acknowledged is seen
    int round = 0;
    while (!done) {
      const int writer = round++ % kWriters;
      const int sure = acknowledged[writer].load();
      ReadOptions now;
      now.snapshot = engine->snapshot();
      const auto counted = engine->get(id, "count" + std::to_string(writer), now);
      if (sure == 0) continue;
      if (!counted.ok()) {
        ++failures;
        continue;
      }
      const int newest = std::stoi(*counted);
      if (newest + 1 < sure || !engine->get(id, key_of(writer, newest), now).ok() ||
          engine->get(id, key_of(writer, newest + 1), now).ok()) {
        ++failures;
      }
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      ReadOptions options_of_scan;
      options_of_scan.snapshot = engine->snapshot();
      std::uint64_t entries = 0;
      auto iterator = engine->scan(id, {"w", "x"}, options_of_scan);
      if (!iterator.ok()) {
        ++failures;
        continue;
      }
      Bytes before;
      for (auto& at = **iterator; at.valid(); at.next(), ++entries) {
        if (at.key() <= before || at.value().size() != 200) ++failures;
        before = at.key();
      }
      const auto counted = engine->range_stats(id, {"w", "x"}, options_of_scan);
      if (!counted.ok() || counted->entries != entries) ++failures;
      if (engine->stats().last_sequence < entries) ++failures;
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      if (!engine->flush().ok()) ++failures;
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      if (!engine->compact({id}, {}).ok()) ++failures;
      std::this_thread::yield();
    }
  });
  for (int writer = 0; writer < kWriters; ++writer)
    threads[static_cast<std::size_t>(writer)].join();
  done = true;
  for (std::size_t i = kWriters; i < threads.size(); ++i) threads[i].join();
  CHECK(failures == 0);
  CHECK(engine->stats().commit_groups <= engine->stats().batches);
  CHECK(engine->stats().compaction.relocations > 0);

  engine.reset();
  auto again = Engine::open(options, environment);
  INFO(again.status().to_string());
  REQUIRE(again.ok());
  CHECK((*again)->range_stats(id, {"w", "x"}, {})->entries == kWriters * kBatches);
  again = not_found("closed");
}

TEST_CASE("engine refuses a batch whole") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  WriteBatch unknown;
  unknown.put(id, "a", "1");
  unknown.put(id + 1, "b", "2");
  CHECK(store.engine->write(unknown, Durability::Async).code() == StatusCode::InvalidArgument);
  WriteBatch zero;
  zero.put(0, "a", "1");
  CHECK(store.engine->write(zero, Durability::Async).code() == StatusCode::InvalidArgument);
  WriteBatch large;
  large.put(id, "a", "1");
  large.put(id, Bytes(kKeySizeMaxBytes + 1, 'k'), "2");
  CHECK(store.engine->write(large, Durability::Async).code() == StatusCode::InvalidArgument);
  CHECK(store.engine->get(id, "a", {}).status().code() == StatusCode::NotFound);
  CHECK(store.engine->stats().batches == 0);
}

}  // namespace edgecase::test
