// Real threads on the machine's own files: writers, readers, flushes and merges side by side. Run
// it under the thread sanitizer.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "edgecase/engine.h"
#include "support/temp_directory.h"

namespace edgecase::test {
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

TEST_CASE("engine recognises one directory under two names") {
  TempDirectory directory;
  const auto executor = make_thread_executor();
  EventListener listener;
  const Environment environment{posix_file_system(), system_clock(), system_random(), *executor,
                                listener};
  Options options;
  options.metadata_directory = directory / "store";
  options.values_directory = directory / "store/../store";
  CHECK(Engine::open(options, environment).status().code() == StatusCode::InvalidArgument);
  options.values_directory = directory / "store/values";  // inside is allowed
  CHECK(Engine::open(options, environment).ok());
}

}  // namespace edgecase::test
