#include "app/store_clock.h"

#include <doctest/doctest.h>

#include "support/manual_clock.h"
#include "support/model_engine.h"

namespace edgecase::app {

TEST_CASE("a clock behind what the store has known is not trusted, unless it is confirmed") {
  constexpr std::int64_t kHour = 3600LL * 1'000'000'000;
  test::ManualClock machine;
  test::ModelEngine engine;
  StoreClock clock(machine);
  engine.set_expiry_now_ns(machine.wall_ns() + 72 * kHour);
  CHECK(clock.trust() == ClockTrust::Trusted);  // nothing is known yet
  clock.follow(engine);
  CHECK(clock.trust() == ClockTrust::Untrusted);
  machine.set_synchronised(true);
  CHECK(clock.trust() == ClockTrust::Trusted);
  machine.set_synchronised(false);
  machine.advance(72 * kHour - StoreClock::kBehindMaxNs - 1);
  CHECK(clock.trust() == ClockTrust::Untrusted);
  machine.advance(1);
  CHECK(clock.trust() == ClockTrust::Trusted);
  machine.set_trust(ClockTrust::Untrusted);
  machine.set_synchronised(true);
  CHECK(clock.trust() == ClockTrust::Untrusted);
  machine.set_trust(ClockTrust::Trusted);
  engine.set_expiry_now_ns(INT64_MIN);
  CHECK(clock.trust() == ClockTrust::Trusted);
}

}  // namespace edgecase::app
