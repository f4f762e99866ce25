#include "mqtt/takeover_watch.h"

#include <doctest/doctest.h>

using edgecase::mqtt::TakeoverWatch;

namespace {

constexpr std::int64_t kSoon = TakeoverWatch::kShortNs - 1;

void lose_all_but_one(TakeoverWatch& watch) {
  for (int i = 1; i < TakeoverWatch::kLosses; ++i) CHECK(watch.connection_lost(kSoon) == 0);
}

}  // namespace

TEST_CASE("takeover watch: several short connections in a row are one, and the pauses grow") {
  TakeoverWatch watch;
  lose_all_but_one(watch);
  CHECK(watch.connection_lost(kSoon) == TakeoverWatch::kFirstPauseNs);
  CHECK(watch.connection_lost(0) == 2 * TakeoverWatch::kFirstPauseNs);
  std::int64_t pause_ns = 0;
  for (int i = 0; i < 20; ++i) pause_ns = watch.connection_lost(0);
  CHECK(pause_ns == TakeoverWatch::kMaxPauseNs);
}

TEST_CASE("takeover watch: a broker that was away, or a connection that held, starts it over") {
  TakeoverWatch watch;
  lose_all_but_one(watch);
  watch.broker_is_away();
  lose_all_but_one(watch);
  CHECK(watch.connection_lost(TakeoverWatch::kShortNs) == 0);
  lose_all_but_one(watch);
  CHECK(watch.connection_lost(0) == TakeoverWatch::kFirstPauseNs);
}
