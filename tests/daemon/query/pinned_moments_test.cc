#include "query/pinned_moments.h"

#include <doctest/doctest.h>

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

}  // namespace edgecase::query
