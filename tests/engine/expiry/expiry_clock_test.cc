// By which time entries expire, while a machine's clock stands, leaps and is not trusted.
#include "expiry/expiry_clock.h"

#include <doctest/doctest.h>

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

}  // namespace edgecase::engine
