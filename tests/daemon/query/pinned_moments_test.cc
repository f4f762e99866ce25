#include "query/pinned_moments.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "support/manual_clock.h"
#include "support/model_engine.h"

namespace edgecase::query {
namespace {

struct Moments {
  edgecase::test::ManualClock clock;
  edgecase::test::ModelEngine engine;
  PinnedMoments moments{engine, clock};
};

}  // namespace

TEST_CASE("moments: one is held until it is released") {
  Moments f;
  const std::string one = f.moments.pin().value();
  const std::string other = f.moments.pin().value();
  CHECK(one != other);
  CHECK(f.moments.pin().status().code() == StatusCode::Busy);
  CHECK(f.moments.use(one).value() != f.moments.use(other).value());
  CHECK(f.moments.release(one).ok());
  CHECK(f.moments.release(one).code() == StatusCode::NotFound);
  CHECK(f.moments.use(one).status().code() == StatusCode::NotFound);
  CHECK(f.moments.use(other).ok());
  CHECK(f.moments.pin().ok());
  f.moments.release_all();
  CHECK(f.moments.count() == 0);
  CHECK(f.moments.use(other).status().code() == StatusCode::NotFound);
}

TEST_CASE("moments: one that nobody uses is let go of, one that is read is not") {
  Moments f;
  const std::string idle = f.moments.pin().value();
  const std::string read = f.moments.pin().value();
  const auto reader = f.moments.use(read).value();
  f.clock.advance(PinnedMoments::kLeaseNs);
  f.moments.sweep();
  CHECK(f.moments.count() == 2);
  f.clock.advance(1);
  f.moments.sweep();
  CHECK(f.moments.use(idle).status().code() == StatusCode::NotFound);
  CHECK(f.moments.count() == 1);
  f.clock.advance(PinnedMoments::kLeaseNs);
  CHECK(f.moments.use(read).ok());
}

TEST_CASE("moments: one that nobody reads makes way for another, one that is read does not") {
  Moments f;
  const std::string killed = f.moments.pin().value();
  const std::string read = f.moments.pin().value();
  const auto reader = f.moments.use(read).value();
  f.clock.advance(PinnedMoments::kIdleNs - 1);
  CHECK(f.moments.pin().status().code() == StatusCode::Busy);
  f.clock.advance(1);
  const auto third = f.moments.pin();
  REQUIRE(third.ok());
  CHECK(f.moments.use(killed).status().code() == StatusCode::NotFound);
  CHECK(f.moments.use(read).ok());
  CHECK(f.moments.use(*third).ok());
}

TEST_CASE("moments: the thread lets go of what nobody has used, without being asked") {
  // Stands still too, and tells how often it was looked at.
  class WatchedClock final : public Clock {
   public:
    std::int64_t wall_ns() const override { return inner.wall_ns(); }
    std::int64_t boot_ns() const override {
      const std::lock_guard lock(mutex_);
      ++looks_;
      changed_.notify_all();
      return inner.boot_ns();
    }
    ClockTrust trust() const override { return inner.trust(); }
    // Two: whoever looked first is done with what it looked for.
    bool wait_for_two_looks() {
      std::unique_lock lock(mutex_);
      return changed_.wait_for(lock, std::chrono::seconds(60),
                               [this, enough = looks_ + 2] { return looks_ >= enough; });
    }

    edgecase::test::ManualClock inner;

   private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    mutable int looks_ = 0;
  };
  WatchedClock clock;
  edgecase::test::ModelEngine engine;
  PinnedMoments moments(engine, clock, std::chrono::milliseconds(1));
  REQUIRE(moments.pin().ok());
  // One that is being read stays, and has the thread go on looking.
  const auto read = moments.use(moments.pin().value());
  REQUIRE(read.ok());
  clock.inner.advance(PinnedMoments::kLeaseNs);
  REQUIRE(clock.wait_for_two_looks());
  CHECK(moments.count() == 2);
  clock.inner.advance(1);
  REQUIRE(clock.wait_for_two_looks());
  CHECK(moments.count() == 1);
}

}  // namespace edgecase::query
