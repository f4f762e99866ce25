#include <doctest/doctest.h>

#include "daemon/tiers/tiered_store.h"

namespace edgecase::tiers {

TEST_CASE("tiers: what became windows is erased for good once nobody reads it") {
  const auto hide = [](TieredStore& store) {
    store.set("*/*", "1h then 1m:1d");
    REQUIRE(store.write("t", kNow - 3 * kHour, Value::of_float64(1)));
    store.pass();
    CHECK(store.retention->marks().waiting(10).size() == 1);
  };
  const auto is_left = [](TieredStore& store) {
    return !store.retention->marks().waiting(10).empty();
  };
  {
    TieredStore store;
    store.set("*/*", "forever");
    std::shared_ptr<const Snapshot> reader = store.engine.snapshot();
    hide(store);
    const std::uint64_t revocations = store.engine.revocations();
    store.pass();
    CHECK(is_left(store));
    CHECK(store.engine.revocations() == revocations);
    reader.reset();
    store.pass();
    CHECK_FALSE(is_left(store));
    CHECK(store.engine.revocations() > revocations);
    store.restart();
    CHECK_FALSE(is_left(store));
  }
  {
    // A reader that never ends holds it for a while.
    TieredStore store;
    const std::shared_ptr<const Snapshot> reader = store.engine.snapshot();
    hide(store);
    store.pass();
    CHECK(is_left(store));
    store.engine.set_expiry_now_ns(kNow + kHeldMaxNs);
    store.pass();
    CHECK_FALSE(is_left(store));
  }
  {
    // A restart in between, and a rule without tiers, leave nothing hidden.
    TieredStore store;
    hide(store);
    store.restart();
    CHECK(is_left(store));
    store.pass();
    CHECK_FALSE(is_left(store));
    REQUIRE(store.write("u", kNow - 3 * kHour, Value::of_float64(1)));
    store.pass();
    const std::uint64_t revocations = store.engine.revocations();
    store.set("*/*", "1d");
    store.pass();
    CHECK_FALSE(is_left(store));
    CHECK(store.engine.revocations() > revocations);
  }
}

}  // namespace edgecase::tiers
