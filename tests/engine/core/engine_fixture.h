// A store on two simulated drives, run by one thread: opens, closes, crashes, opens again.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "edgecase/engine.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"

namespace edgecase::test {

// Keeps what the engine reported.
class RecordingListener final : public EventListener {
 public:
  void on_recovered(const RecoveryEvent& event) override { recoveries.push_back(event); }
  void on_flushed(const FlushEvent& event) override { flushes.push_back(event); }
  void on_degraded(std::string_view layer, const Status& status) override {
    degraded.push_back(std::string(layer) + ": " + status.to_string());
  }
  void on_resumed(std::string_view layer) override { resumed.emplace_back(layer); }
  void on_corruption(const Status& status) override { corruptions.push_back(status); }

  std::vector<RecoveryEvent> recoveries;
  std::vector<FlushEvent> flushes;
  std::vector<std::string> degraded;
  std::vector<std::string> resumed;
  std::vector<Status> corruptions;
};

struct EngineFixture {
  EngineFixture() {
    options.metadata_directory = "/m/store";
    options.values_directory = "/v/store";
    options.memory_limit_bytes = 8u << 20;
    options.wal_segment_bytes = 64u << 10;
    options.wal_limit_bytes = 1u << 20;
  }

  Status open() {
    engine.reset();
    Executor& runs = threads != nullptr ? *threads : executor;
    Random& draws = threads != nullptr ? system_random() : random;
    auto opened = Engine::open(options, {disk, clock, draws, runs, listener});
    if (!opened.ok()) return opened.status();
    engine = std::move(opened).value();
    return ok();
  }
  void close() {
    engine.reset();
    executor.drop_all();
  }
  void reopen() {
    close();
    const Status opened = open();
    INFO(opened.to_string());
    REQUIRE(opened.ok());
  }
  NamespaceId make_namespace(const std::string& name, const NamespaceOptions& wanted = {}) {
    const auto id = engine->create_namespace(name, wanted);
    INFO(id.status().to_string());
    REQUIRE(id.ok());
    return *id;
  }
  Status put(NamespaceId id, ByteView key, ByteView value,
             Durability durability = Durability::Sync) {
    WriteBatch batch;
    batch.put(id, key, value);
    return engine->write(batch, durability);
  }
  std::string get(NamespaceId id, ByteView key) {
    auto got = engine->get(id, key, {});
    return got.ok() ? *got : "<" + got.status().to_string() + ">";
  }

  MemoryFileSystem disk{{"/m", "/v"}};
  ManualClock clock;
  SeededRandom random{1};
  ManualExecutor executor;
  std::unique_ptr<Executor> threads;  // takes its place where there is one
  RecordingListener listener;
  Options options;
  std::unique_ptr<Engine> engine;
};

}  // namespace edgecase::test
