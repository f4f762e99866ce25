#include "forward/unsent.h"

#include <doctest/doctest.h>

#include "daemon/erase/erase_room.h"

namespace edgecase::forward {
namespace {

using erase::test::kHour;
using erase::test::kNow;
using erase::test::kSecond;
using erase::test::Room;
using retention::Leaving;

constexpr std::int64_t kMinute = 60 * kSecond, kDay = 24 * kHour;

std::vector<config::ForwardSelection> only(const char* selector) {
  return {{"default", wire::parse_selector(selector).value()}};
}

// Readings of a day, of devices a and b, by rules of an hour; a target has the first `sent` of
// each.
struct Store {
  explicit Store(std::int64_t keep_ns, const char* selector = "*") { watch(keep_ns, selector); }
  void watch(std::int64_t keep_ns, const char* selector = "*") {
    watched = {.target = {"hub", only(selector)}, .keep_ns = keep_ns, .cursor = cursor};
    unsent.set_targets({watched});
  }
  void rule(const char* selector, std::int64_t retention_ns) {
    const Status set =
        room.retention->set({"default", wire::parse_selector(selector).value(), retention_ns, {}});
    REQUIRE_MESSAGE(set.ok(), set.to_string());
  }
  void at(std::int64_t now_ns) {
    room.engine.set_expiry_now_ns(now_ns);
    const Status looked = unsent.look();
    REQUIRE_MESSAGE(looked.ok(), looked.to_string());
  }
  void sent() {
    cursor = Cursor(room.engine.committed());
    unsent.set_cursor("hub", cursor, cursor);
  }
  std::uint64_t counted(Leaving why) {
    totals.unsent = {};
    unsent.take("hub", totals);
    return totals.unsent[static_cast<std::size_t>(why)];
  }

  Room room;
  Cursor cursor{0};
  Unsent::Watch watched;
  Totals totals;
  Unsent unsent{room.engine, *room.catalog, room.clock, room.retention.get()};
};

TEST_CASE("unsent: what waits is spared, what was sent goes by its rule") {
  Store store(kDay);
  store.rule("*", kHour);
  store.room.engine.set_expiry_now_ns(kNow);
  for (int minute = 50; minute > 0; minute -= 10)
    store.room.write("a", "t", kNow - minute * 60 * kSecond);
  store.sent();
  store.room.write("a", "t", kNow - kSecond);
  store.room.write("b", "t", kNow - kSecond);
  store.at(kNow);
  store.at(kNow + kSecond);
  CHECK(store.unsent.oldest_ns("hub") == kNow - kSecond);
  CHECK(store.room.readings() == 7);
  store.at(kNow + kHour - 5 * kSecond);  // a hold begins
  CHECK(store.room.readings() == 2);
  store.at(kNow + 3 * kHour);
  CHECK(store.room.readings() == 2);
  CHECK(store.unsent.waits_from_ns() == kNow - kSecond);
  // What comes later and is sent before is kept no longer for it than what waits asks.
  CHECK(store.counted(Leaving::Expired) == 0);
  store.sent();
  store.at(kNow + 3 * kHour + kSecond);
  CHECK(store.room.readings() == 0);
  CHECK(store.counted(Leaving::Expired) == 0);
  CHECK_FALSE(store.unsent.oldest_ns("hub"));
}

TEST_CASE("unsent: what is newer than the engine's time, and soon over, is spared, not counted") {
  Store store(kDay);
  store.rule("*", kSecond);
  store.room.engine.set_expiry_now_ns(kNow);
  store.room.write("a", "t", kNow + kSecond / 2);
  store.at(kNow);
  CHECK(store.counted(Leaving::Expired) == 0);
  store.at(kNow + kMinute);
  CHECK(store.room.readings() == 1);
  CHECK(store.counted(Leaving::Expired) == 0);
}

TEST_CASE("unsent: beside what waits, the sent expire by their rule") {
  Store store(kDay, "b");
  store.rule("*", kHour);
  store.room.engine.set_expiry_now_ns(kNow);
  // The target takes b alone: of a nothing waits.
  for (int minute = 0; minute < 60; minute += 10) {
    store.room.write("a", "t", kNow - minute * 60 * kSecond);
    store.room.write("b", "t", kNow - minute * 60 * kSecond);
  }
  store.sent();
  store.room.write("b", "t", kNow - 30 * 60 * kSecond + 1);
  store.at(kNow);
  store.at(kNow + 29 * 60 * kSecond);  // a hold begins: of b what is older than the one that waits
  CHECK(store.room.readings_of("b", "t") == 4 + 1);
  store.at(kNow + 40 * 60 * kSecond);
  CHECK(store.room.readings_of("a", "t") == 3);
  CHECK(store.room.readings_of("b", "t") == 3 + 1);
  CHECK(store.counted(Leaving::Expired) == 0);
}

TEST_CASE("unsent: over its time, or where nothing waits, what expires is counted") {
  for (const std::int64_t keep_ns : {std::int64_t{0}, 2 * kHour}) {
    CAPTURE(keep_ns);
    Store store(keep_ns);
    store.rule("*", kHour);
    store.room.engine.set_expiry_now_ns(kNow);
    store.room.write("a", "t", kNow);
    store.sent();
    store.room.write("a", "t", kNow + 1);
    store.room.write("b", "t", kNow + 2);
    std::uint64_t counted = 0;
    const std::int64_t end_ns = kNow + std::max(keep_ns, kHour);
    for (std::int64_t now_ns = kNow; now_ns < end_ns + 20 * kSecond; now_ns += kSecond) {
      store.at(now_ns);
      counted += store.counted(Leaving::Expired);
      if (now_ns == end_ns - 10 * kSecond) CHECK(counted == 0);
    }
    CHECK(counted == 2);
    CHECK(store.room.readings() == 0);
  }
}

TEST_CASE("unsent: what expires while nothing runs is counted at the start, once") {
  Store store(0);
  store.rule("*", kHour);
  store.room.engine.set_expiry_now_ns(kNow);
  store.room.write("a", "t", kNow - 30 * kMinute);
  store.sent();
  for (int minute = 20; minute > 0; --minute) store.room.write("a", "t", kNow - minute * kMinute);
  store.at(kNow);
  REQUIRE(store.counted(Leaving::Expired) == 0);
  store.watched.cursor = store.cursor;
  store.watched.expired_until_ns = store.totals.expired_until_ns;
  REQUIRE(store.watched.expired_until_ns > kNow);

  // Off for 50 minutes and half a one: the engine knows no later time than before.
  store.room.restart();
  const std::int64_t now_ns = kNow + 50 * kMinute + 30 * kSecond;
  store.room.clock.set_wall_ns(now_ns);
  HeldClock held(store.room.clock);
  const auto counted = [&](Unsent& unsent) {
    store.totals.unsent = {};
    unsent.take("hub", store.totals);
    return store.totals.unsent[static_cast<std::size_t>(Leaving::Expired)];
  };
  const auto start = [&] {
    auto unsent = std::make_unique<Unsent>(store.room.engine, *store.room.catalog, store.room.clock,
                                           store.room.retention.get(), &held);
    unsent->set_targets({store.watched});
    CHECK(unsent->look().ok());
    return unsent;
  };
  CHECK(held.trust() == ClockTrust::Untrusted);
  auto after = start();
  CHECK(held.trust() == ClockTrust::Trusted);
  CHECK(counted(*after) == 0);
  SUBCASE("the engine follows at once") {
    store.room.engine.set_expiry_now_ns(now_ns);
    REQUIRE(after->look(false).ok());
    CHECK(counted(*after) == 11);
    store.watched.expired_until_ns = store.totals.expired_until_ns;
    after = start();
    REQUIRE(after->look(false).ok());
    CHECK(counted(*after) == 0);
  }
  SUBCASE("it waits until the clock is confirmed: what is sent meanwhile is not counted") {
    store.room.engine.set_expiry_now_ns(kNow + kSecond);
    REQUIRE(after->look(false).ok());
    CHECK(counted(*after) == 0);
    const Cursor all(store.room.engine.committed());
    after->set_cursor("hub", all, all);
    store.room.write("b", "t", kNow - 15 * kMinute);
    store.room.engine.set_expiry_now_ns(kNow + 2 * kSecond);
    REQUIRE(after->look().ok());
    REQUIRE(after->look().ok());
    store.room.engine.set_expiry_now_ns(now_ns);
    REQUIRE(after->look().ok());
    CHECK(counted(*after) == 1);
  }
}

TEST_CASE("unsent: a step of the clock waits for the look that foresees it") {
  Store store(0);
  store.rule("*", kHour);
  store.room.engine.set_expiry_now_ns(kNow);
  HeldClock held(store.room.clock);
  Unsent unsent(store.room.engine, *store.room.catalog, store.room.clock,
                store.room.retention.get(), &held);
  SUBCASE("with a target") {
    unsent.set_targets({store.watched});
    REQUIRE(unsent.look().ok());
    store.room.clock.advance(kHour);
    CHECK(held.trust() == ClockTrust::Trusted);
    store.room.clock.set_wall_ns(kNow + 3 * kHour);
    CHECK(held.trust() == ClockTrust::Untrusted);
    REQUIRE(unsent.look().ok());
    CHECK(held.trust() == ClockTrust::Trusted);
    store.room.clock.set_trust(ClockTrust::Untrusted);
    CHECK(held.trust() == ClockTrust::Untrusted);
  }
  SUBCASE("without one nothing waits") {
    REQUIRE(unsent.look().ok());
    store.room.clock.set_wall_ns(kNow + 3 * kHour);
    CHECK(held.trust() == ClockTrust::Trusted);
  }
}

TEST_CASE("unsent: a start keeps what was held until it is known what waits") {
  Store store(kDay);
  store.rule("*", kHour);
  store.room.engine.set_expiry_now_ns(kNow);
  store.room.write("a", "t", kNow);
  store.at(kNow);
  store.at(kNow + kHour - kSecond);
  store.at(kNow + 2 * kHour);
  CHECK(store.room.readings() == 1);
  store.room.restart();
  CHECK(store.room.readings() == 1);
  Unsent after(store.room.engine, *store.room.catalog, store.room.clock,
               store.room.retention.get());
  CHECK(after.waits_from_ns() == INT64_MAX);
  SUBCASE("it waits still") {
    after.set_targets({store.watched});
    CHECK(after.waits_from_ns() == kNow + 2 * kHour - kDay);
    REQUIRE(after.look().ok());
    CHECK(store.room.readings() == 1);
    CHECK(after.waits_from_ns() == kNow);
  }
  SUBCASE("nobody is configured") {
    REQUIRE(after.look().ok());
    CHECK(store.room.readings() == 0);
  }
}

TEST_CASE("unsent: what goes is counted of those that lack it, behind the place of each") {
  Store store(0);
  const auto entry_of = [&](const char* device) {
    return store.room.catalog->find("default", device, "t").value();
  };
  for (int i = 0; i < 5; ++i) {
    store.room.write("a", "t", kNow + i);
    store.room.write("b", "t", kNow + i);
  }
  const auto count = [&](const char* device, std::int64_t from_ns, std::int64_t to_ns) {
    store.unsent.count_leaving(Leaving::Evicted, entry_of(device), from_ns, to_ns, 1);
    return store.counted(Leaving::Evicted);
  };
  CHECK(count("a", INT64_MIN, INT64_MAX) == 5);
  CHECK(count("a", kNow + 1, kNow + 3) == 2);
  // A backlog of which a is there, and of b the first.
  Cursor cursor(0);
  const auto id = entry_of("b").id;
  cursor.fresh_part(store.room.engine.committed(),
                    Place{id.namespace_id, wire::make_reading_key({id.device, id.sensor, kNow})});
  store.unsent.set_cursor("hub", cursor, cursor);
  CHECK(count("a", INT64_MIN, INT64_MAX) == 0);
  CHECK(count("b", INT64_MIN, INT64_MAX) == 4);
  store.room.write("a", "t", kNow + 9);
  store.room.write("a", "t", kNow);  // written again
  CHECK(count("a", INT64_MIN, INT64_MAX) == 2);
  store.room.write("b", "t", kNow + 9);
  CHECK(count("b", INT64_MIN, INT64_MAX) == 5);
  store.sent();
  CHECK(count("a", INT64_MIN, INT64_MAX) == 0);
  CHECK(count("b", INT64_MIN, INT64_MAX) == 0);
}

}  // namespace
}  // namespace edgecase::forward
