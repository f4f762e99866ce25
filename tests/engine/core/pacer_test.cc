// When writers are slowed down for garbage, and when that would free nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "engine/core/engine_fixture.h"

namespace edgecase::engine {
namespace {

using test::EngineFixture;

// 20 MB of single values, each value file a part of the keys; on a drive that is no longer roomy,
// so that the store is held to what it needs.
struct SettledStore : EngineFixture {
  static constexpr std::uint64_t kValues = 4'000;
  static constexpr std::size_t kValueBytes = 5'000;

  SettledStore() {
    disk.set_capacity("/v", 35u << 20);
    options.compress = false;
    REQUIRE(open().ok());
    make_namespace("default");
    for (std::uint64_t i = 0; i < kValues; ++i) put_value(i);
    REQUIRE(engine->flush().ok());
    REQUIRE(engine->compact({1}, {}).ok());
    executor.run_all();
  }

  void put_value(std::uint64_t i) {
    const Bytes key = "key" + std::to_string(100'000 + i);
    REQUIRE(put(1, key, Bytes(kValueBytes, 'v'), Durability::Async).ok());
  }
  // One of each hundred keys: of each file as many.
  void put_again(std::uint64_t of_hundred) {
    for (std::uint64_t i = of_hundred; i < kValues; i += 100) put_value(i);
    REQUIRE(engine->flush().ok());
    executor.run_all();
  }
  double garbage() const {
    return static_cast<double>(engine->stats().values.live_bytes) /
               static_cast<double>(kValues * kValueBytes) -
           1;
  }
};

}  // namespace

TEST_CASE("a store of which all dies alike is cleaned in time, and writers hardly wait before") {
  SettledStore store;
  const Stats before = store.engine->stats();
  double most = 0;
  for (std::uint64_t of_hundred = 0; of_hundred < 80; ++of_hundred) {
    store.put_again(of_hundred);
    most = std::max(most, store.garbage());
  }
  const Stats after = store.engine->stats();
  CAPTURE(most);
  CHECK(most > 0.2);  // where writers would be slowed down
  CHECK(most < 0.28);
  CHECK(after.compaction.relocations > before.compaction.relocations);
  // The lane had done all that was worth it before each put. With pauses it would be 27 ms.
  CHECK(after.stall_ns - before.stall_ns < 10'000'000);
}

}  // namespace edgecase::engine
