// The sealer of a real encrypted store in memory.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <utility>

#include "edgecase/engine.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"

namespace edgecase::audit::test {

class StoreSealer {
 public:
  explicit StoreSealer(std::uint64_t seed = 1) : random_(seed) { open('m', std::nullopt); }

  Sealer* get() const { return engine_->sealer(); }
  void change_master_key() {
    open('n', 'm');
    open('n', std::nullopt);
  }

 private:
  void open(std::uint8_t current, std::optional<std::uint8_t> previous) {
    engine_.reset();
    executor_.drop_all();
    Options options;
    options.metadata_directory = "/m/store";
    options.values_directory = "/v/store";
    options.encryption = MasterKeys{key_of(current)};
    if (previous) options.encryption->previous = key_of(*previous);
    auto opened = Engine::open(options, {disk_, clock_, random_, executor_, listener_});
    REQUIRE_MESSAGE(opened.ok(), opened.status().to_string());
    engine_ = std::move(opened).value();
  }
  static SecretKey key_of(std::uint8_t byte) {
    SecretKey key;
    key.fill(byte);
    return key;
  }

  edgecase::test::MemoryFileSystem disk_{{"/m", "/v"}};
  edgecase::test::ManualClock clock_;
  SeededRandom random_;
  edgecase::test::ManualExecutor executor_;
  EventListener listener_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace edgecase::audit::test
