#include "mqtt/broker_socket.h"

#include <doctest/doctest.h>

namespace edgecase::mqtt {
namespace {

constexpr std::int64_t kSoon = TakeoverWatch::kShortNs - 1;

void lose_all_but_one(TakeoverWatch& watch) {
  for (int i = 1; i < TakeoverWatch::kLosses; ++i) CHECK(watch.connection_lost(kSoon) == 0);
}

}  // namespace

TEST_CASE("answer patience: doubles with every silence, up to its limit, until all was answered") {
  AnswerPatience patience(15);
  std::int64_t want_ns = 15;
  for (int i = 0; i < AnswerPatience::kDoublingsMax; ++i) {
    CHECK(patience.now_ns() == want_ns);
    patience.was_silent();
    want_ns *= 2;
  }
  for (int i = 0; i < 100; ++i) {
    CHECK(patience.now_ns() == want_ns);
    patience.was_silent();
  }
  patience.all_answered();
  CHECK(patience.now_ns() == 15);
}

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

}  // namespace edgecase::mqtt
