// What goes, and what is kept, when the clock leaps.
#include "expiry/leap_guard.h"

#include "engine/core/expiring_store.h"

namespace edgecase::engine {

using test::ExpiringStore;
using test::key_at;
using test::kHour;
using test::kSecond;
using test::kStartNs;

namespace {

struct LeapingStore : ExpiringStore {
  // Time passes, and background work is done.
  void pass(std::int64_t ns) {
    clock.advance(ns);
    executor.run_all();
    executor.advance(ns);
    executor.run_all();
  }
  std::vector<std::string> value_files() {
    std::vector<std::string> names;
    const auto entries = disk.list_directory(options.values_directory);
    REQUIRE(entries.ok());
    for (const DirectoryEntry& entry : *entries)
      if (entry.name.ends_with(".val")) names.push_back(entry.name);
    return names;
  }
  void settle() {
    REQUIRE(engine->flush().ok());
    executor.run_all();
  }
};

}  // namespace

TEST_CASE("what a leap of the clock lets go is a share of all, or waits a day") {
  constexpr std::uint64_t kAll = 100u << 20;
  constexpr std::uint64_t kMost = kAll / kLeapShare;
  LeapGuard guard;
  CHECK(guard.judge(kMost, kAll, kHour));
  CHECK(guard.judge(0, kAll, kHour));
  CHECK(guard.held_bytes() == 0);
  SUBCASE("a small store is no alarm") {
    LeapGuard small;
    CHECK(small.judge(kLeapBytesMin, kLeapBytesMin, 0));
  }
  SUBCASE("many small leaps are as much as a large one") {
    CHECK_FALSE(guard.judge(1, kAll, 2 * kHour));
    CHECK(guard.held_bytes() == 1);
    CHECK(guard.held_since_boot_ns() == 2 * kHour);
    CHECK(guard.judge(1, kAll, kLeapWindowNs));  // another day
  }
  SUBCASE("held until nothing is, or for a day") {
    CHECK_FALSE(guard.judge(kAll, kAll, 2 * kHour));
    CHECK_FALSE(guard.judge(kAll, kAll, 2 * kHour + kLeapWindowNs - 1));
    CHECK(guard.held_bytes() == kAll);
    SUBCASE("confirmed") {
      CHECK(guard.judge(0, kAll, 3 * kHour));
      CHECK(guard.held_bytes() == 0);
    }
    SUBCASE("a day later") {
      CHECK(guard.judge(kAll, kAll, 2 * kHour + kLeapWindowNs));
      CHECK(guard.held_bytes() == 0);
    }
  }
}

TEST_CASE("what a leap of the clock hides is kept, and there again when it is set right") {
  LeapingStore store;
  store.options.memory_limit_bytes = 16u << 20;
  store.options.memtable_bytes = 4u << 20;
  store.options.wal_limit_bytes = 16u << 20;
  store.reopen();
  store.set("", 24 * kHour);
  SeededRandom random(3);
  for (int i = 0; i < 300; ++i) {
    Bytes value(8192, 'v');
    for (char& byte : value) byte = static_cast<char>(random.below(256));
    REQUIRE(store.put(store.id, key_at("a1", kStartNs + i * kSecond), value).ok());
  }
  store.settle();
  const std::size_t files = store.value_files().size();
  REQUIRE(store.engine->stats().values.live_bytes > 2u << 20);
  store.clock.set_wall_ns(kStartNs + 640'000 * kHour);
  store.pass(10 * kSecond);
  CHECK(store.engine->stats().expiry.wait == ExpiryWait::Jump);
  CHECK(store.count() == 300);
  store.pass(kHour);
  store.pass(10 * kSecond);
  CHECK(store.engine->stats().expiry.waits == 0);
  CHECK(store.count() == 0);
  CHECK(store.value_files().size() == files);
  CHECK(store.engine->stats().expiry.held_bytes > 2u << 20);
  SUBCASE("nor by a merge, a flush or the next process") {
    REQUIRE(store.engine->compact({store.id}, {}).ok());
    store.reopen();
    store.clock.set_wall_ns(kStartNs + 2 * kHour);
    CHECK(store.count() == 300);
    store.expect_sound();
  }
  SUBCASE("set right") {
    store.clock.set_wall_ns(kStartNs + 2 * kHour);
    CHECK(store.count() == 300);
    store.pass(10 * kSecond);
    CHECK(store.engine->stats().expiry.held_bytes == 0);
    store.pass(23 * kHour);
    store.pass(10 * kSecond);
    CHECK(store.value_files().empty());
  }
  SUBCASE("confirmed") {
    store.clock.set_synchronised(true);
    store.pass(10 * kSecond);
    CHECK(store.value_files().empty());
  }
  SUBCASE("a day later") {
    store.pass(24 * kHour);
    store.pass(10 * kSecond);
    CHECK(store.value_files().empty());
    CHECK(store.engine->stats().expiry.held_bytes == 0);
  }
}

}  // namespace edgecase::engine
