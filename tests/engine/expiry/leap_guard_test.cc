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
  static constexpr int kReadings = 300;

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
  explicit LeapingStore(std::optional<std::int64_t> retention_ns = 24 * kHour) {
    options.memory_limit_bytes = 16u << 20;
    options.memtable_bytes = 4u << 20;
    options.wal_limit_bytes = 16u << 20;
    reopen();
    if (retention_ns) set("", retention_ns);
    pass_looks();  // the log that was there goes
    SeededRandom values(3);
    for (int i = 0; i < kReadings; ++i) {
      Bytes value(8192, 'v');
      for (char& byte : value) byte = static_cast<char>(values.below(256));
      REQUIRE(put(id, key_at("a1", kStartNs + i * kSecond), value).ok());
    }
  }
  // The clock leaps, and is followed.
  void leap() {
    clock.set_wall_ns(kStartNs + 640'000 * kHour);
    CHECK(engine->stats().expiry.wait == ExpiryWait::Jump);
    CHECK(count() == kReadings);
    clock.advance(kHour);
    pass_looks();
    CHECK(engine->stats().expiry.waits == 0);
    CHECK(count() == 0);
  }
  void pass_looks() {
    for (int look = 0; look < 3; ++look) pass(10 * kSecond);
  }
  std::uint64_t held_bytes() { return engine->stats().expiry.held_bytes; }
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
    CHECK(guard.judge(1, kAll, kLeapHoldNs));  // another day
  }
  SUBCASE("held before, by other processes") {
    guard.resume(23 * kHour);
    CHECK(guard.held_ns(2 * kHour) == 23 * kHour);
    CHECK_FALSE(guard.judge(kAll, kAll, 2 * kHour));
    CHECK(guard.held_ns(2 * kHour + kSecond) == 23 * kHour + kSecond);
    CHECK_FALSE(guard.judge(kAll, kAll, 3 * kHour - 1));
    CHECK(guard.judge(kAll, kAll, 3 * kHour));
    CHECK(guard.held_ns(3 * kHour) == 0);
    CHECK_FALSE(guard.judge(kAll, kAll, 4 * kHour));  // another leap, another day
    CHECK(guard.held_ns(4 * kHour) == 0);
  }
  SUBCASE("held until nothing is, or for a day") {
    CHECK_FALSE(guard.judge(kAll, kAll, 2 * kHour));
    CHECK_FALSE(guard.judge(kAll, kAll, 2 * kHour + kLeapHoldNs - 1));
    CHECK(guard.held_bytes() == kAll);
    SUBCASE("confirmed") {
      CHECK(guard.judge(0, kAll, 3 * kHour));
      CHECK(guard.held_bytes() == 0);
    }
    SUBCASE("a day later") {
      CHECK(guard.judge(kAll, kAll, 2 * kHour + kLeapHoldNs));
      CHECK(guard.held_bytes() == 0);
    }
  }
}

TEST_CASE("what a leap of the clock hides is kept, and there again when it is set right") {
  LeapingStore store;
  store.settle();
  const std::size_t files = store.value_files().size();
  REQUIRE(store.engine->stats().values.live_bytes > 2u << 20);
  store.leap();
  CHECK(store.value_files().size() == files);
  CHECK(store.held_bytes() > 2u << 20);
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

TEST_CASE("what a leap of the clock finds in memory alone is kept too") {
  LeapingStore store;
  REQUIRE(store.engine->stats().memtable_bytes > 2u << 20);
  store.leap();
  CHECK(store.held_bytes() > 2u << 20);
  store.clock.set_wall_ns(kStartNs + 2 * kHour);
  CHECK(store.count() == LeapingStore::kReadings);
}

TEST_CASE("nor does the first rule that is set by a clock that leapt let anything go") {
  LeapingStore store(std::nullopt);
  store.settle();  // which notes what time it is
  const std::int64_t known_ns = store.clock.wall_ns();
  store.clock.set_wall_ns(kStartNs + 640'000 * kHour);
  REQUIRE(store.engine->expiry_now_ns() == known_ns);
  store.pass(kHour);
  REQUIRE(store.engine->expiry_now_ns() == store.clock.wall_ns());
  store.set("", 24 * kHour);
  store.pass_looks();
  CHECK(store.count() == 0);
  CHECK(store.held_bytes() > 2u << 20);
  store.clock.set_wall_ns(kStartNs + 2 * kHour);
  CHECK(store.count() == LeapingStore::kReadings);
}

TEST_CASE("a clock that is no longer trusted lets nothing go, however long it was held") {
  LeapingStore store;
  store.leap();
  store.clock.set_trust(ClockTrust::Untrusted);
  store.pass(48 * kHour);
  store.pass_looks();
  store.clock.set_trust(ClockTrust::Trusted);
  store.clock.set_wall_ns(kStartNs + 10 * kHour);
  CHECK(store.count() == LeapingStore::kReadings);
  store.pass_looks();
  CHECK(store.held_bytes() == 0);
}

TEST_CASE("what is held goes after a day of running, in however many processes") {
  LeapingStore store;
  store.set("", 240 * kHour);
  store.leap();
  // Six hours each: one is waited for, in five it is held.
  for (int process = 0; process < 4; ++process) {
    CHECK(store.held_bytes() > 2u << 20);
    store.pass(5 * kHour);
    store.pass_looks();
    CHECK_FALSE(store.value_files().empty());
    store.reopen();
    CHECK(store.held_bytes() == 0);
    store.leap();
  }
  store.pass(5 * kHour);
  store.pass_looks();
  CHECK(store.value_files().empty());
  CHECK(store.held_bytes() == 0);
}

}  // namespace edgecase::engine
