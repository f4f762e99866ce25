// By which time entries expire, while a machine's clock stands, leaps and is not trusted.

#include "expiry/retention_rules.h"

#include <doctest/doctest.h>

#include "engine/core/expiring_store.h"
#include "support/manual_clock.h"

namespace edgecase::engine {
namespace {

constexpr std::int64_t kMinuteNs = 60'000'000'000;
constexpr std::int64_t kHourNs = 60 * kMinuteNs;
constexpr std::int64_t kDayNs = 24 * kHourNs;
constexpr std::int64_t kStart = test::ManualClock::kStartWallNs;

}  // namespace

TEST_CASE("expiry clock: it goes as the wall clock does, and never back") {
  test::ManualClock wall;
  ExpiryClock clock(wall, kNoMarkNs);
  CHECK(clock.now_ns() == kStart);
  wall.advance(kHourNs * 5);
  CHECK(clock.now_ns() == kStart + 5 * kHourNs);
  wall.set_wall_ns(kStart);
  CHECK(clock.now_ns() == kStart + 5 * kHourNs);
  wall.advance(kMinuteNs);
  CHECK(clock.now_ns() == kStart + 5 * kHourNs);  // until the wall has caught up
  wall.advance(5 * kHourNs);
  CHECK(clock.now_ns() == kStart + 5 * kHourNs + kMinuteNs);
}

TEST_CASE("expiry clock: it stands still while the wall clock is not trusted") {
  test::ManualClock wall;
  ExpiryClock clock(wall, kStart - kMinuteNs);
  CHECK(clock.now_ns() == kStart);
  wall.set_trust(ClockTrust::Untrusted);
  wall.advance(kDayNs);
  const ExpiryClock::Reading stands = clock.read();
  CHECK(stands.now_ns == kStart);
  CHECK(stands.wait == ExpiryWait::Untrusted);
  wall.set_trust(ClockTrust::Trusted);
  CHECK(clock.now_ns() == kStart + kDayNs);  // as much time has passed since boot
  CHECK(clock.read().wait == ExpiryWait::None);
}

TEST_CASE("expiry clock: a store that knows no time waits for a clock that is trusted") {
  test::ManualClock wall;
  wall.set_trust(ClockTrust::Untrusted);
  ExpiryClock clock(wall, kNoMarkNs);
  CHECK(clock.now_ns() == kNoMarkNs);
}

TEST_CASE("expiry clock: a leap of more than an hour is followed an hour later, not before") {
  test::ManualClock wall;
  ExpiryClock clock(wall, kNoMarkNs);
  REQUIRE(clock.now_ns() == kStart);
  wall.set_wall_ns(kStart + kDayNs);
  CHECK(clock.now_ns() == kStart);
  CHECK(clock.read().wait == ExpiryWait::Jump);
  wall.advance(59 * kMinuteNs);
  CHECK(clock.now_ns() == kStart + 59 * kMinuteNs);  // time goes on as it did
  wall.advance(kMinuteNs);
  const ExpiryClock::Reading followed = clock.read();
  CHECK(followed.now_ns == kStart + kDayNs + kHourNs);
  CHECK(followed.wait == ExpiryWait::None);
  // Entries are hidden by it; their bytes stay until the leap is accepted.
  CHECK(followed.lag_ns == kDayNs);
  CHECK(followed.removal_ns() == kStart + kHourNs);
  clock.accept(kHourNs);
  CHECK(clock.removal_ns() == kStart + 2 * kHourNs);
  clock.accept(100 * kDayNs);
  CHECK(clock.removal_ns() == clock.now_ns());
}

TEST_CASE("expiry clock: a leap that a time server confirms is followed at once, and whole") {
  test::ManualClock wall;
  ExpiryClock clock(wall, kNoMarkNs);
  REQUIRE(clock.now_ns() == kStart);
  wall.set_wall_ns(kStart + kDayNs);
  wall.set_synchronised(true);
  CHECK(clock.now_ns() == kStart + kDayNs);
  CHECK(clock.removal_ns() == kStart + kDayNs);
}

TEST_CASE("expiry clock: a clock that was set wrong and back within the hour was never followed") {
  test::ManualClock wall;
  ExpiryClock clock(wall, kNoMarkNs);
  REQUIRE(clock.now_ns() == kStart);
  wall.set_wall_ns(kStart + 10 * kDayNs);
  CHECK(clock.now_ns() == kStart);
  wall.advance(30 * kMinuteNs);
  CHECK(clock.now_ns() == kStart + 30 * kMinuteNs);
  wall.set_wall_ns(kStart + 30 * kMinuteNs);
  wall.advance(2 * kHourNs);
  const ExpiryClock::Reading later = clock.read();
  CHECK(later.now_ns == kStart + 30 * kMinuteNs + 2 * kHourNs);
  CHECK(later.lag_ns == 0);
}

TEST_CASE(
    "expiry clock: a leap that was followed is taken back with the clock, and hidden entries "
    "with it") {
  test::ManualClock wall;
  ExpiryClock clock(wall, kNoMarkNs);
  REQUIRE(clock.now_ns() == kStart);
  wall.set_wall_ns(kStart + 10 * kDayNs);
  REQUIRE(clock.now_ns() == kStart);
  wall.advance(kHourNs);
  REQUIRE(clock.now_ns() == kStart + 10 * kDayNs + kHourNs);
  wall.set_wall_ns(kStart + kHourNs);
  CHECK(clock.now_ns() == kStart + kHourNs);
  CHECK(clock.removal_ns() == kStart + kHourNs);
}

TEST_CASE("expiry clock: the time a machine was off is a leap too, from the mark of the store") {
  test::ManualClock wall;
  ExpiryClock off_for_long(wall, kStart - 10 * kDayNs);
  CHECK(off_for_long.now_ns() == kStart - 10 * kDayNs);
  ExpiryClock off_for_a_moment(wall, kStart - kMinuteNs);
  CHECK(off_for_a_moment.now_ns() == kStart);
  ExpiryClock ahead(wall, kStart + kDayNs);  // an entry that has expired stays so
  CHECK(ahead.now_ns() == kStart + kDayNs);
}

// What goes, and what is kept, when the clock leaps.

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
