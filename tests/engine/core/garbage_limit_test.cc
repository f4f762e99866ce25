#include "core/garbage_limit.h"

#include <doctest/doctest.h>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kUseful = 1000;

TEST_CASE("garbage limit: that of a store as it is, where little is garbage") {
  GarbageLimit limit;
  CHECK(limit.next(0.8, 0, 0, 0, kUseful) == doctest::Approx(0.8));
  CHECK(limit.next(0.8, 0.1, 0, 100, kUseful) == doctest::Approx(0.8));
  // It stops growing: at once, since there is none to be rid of.
  CHECK(limit.next(0.2, 0.1, 0, 200, kUseful) == doctest::Approx(0.2));
  CHECK(limit.next(0.2, 0.9, 0, 300, kUseful) == doctest::Approx(0.2));
}

TEST_CASE("garbage limit: what a store that stops growing holds falls by and by") {
  GarbageLimit limit;
  limit.next(0.8, 0.7, 0, 0, kUseful);
  CHECK(limit.next(0.2, 0.7, 0, 0, kUseful) == doctest::Approx(0.7));
  CHECK(limit.next(0.2, 0.75, 0, 400, kUseful) == doctest::Approx(0.6));
  // As fast as it is cleaned, where that is faster; and it never rises.
  CHECK(limit.next(0.2, 0.5, 0, 400, kUseful) == doctest::Approx(0.5));
  CHECK(limit.next(0.2, 0.9, 0, 400, kUseful) == doctest::Approx(0.5));
  CHECK(limit.next(0.2, 0.9, 0, 4000, kUseful) == doctest::Approx(0.2));
  // But for a store that grows again.
  CHECK(limit.next(0.6, 0.9, 0, 4000, kUseful) == doctest::Approx(0.6));
}

TEST_CASE("garbage limit: what was not worth cleaning may stay, until merges have had the time") {
  GarbageLimit limit;
  CHECK(limit.next(0.2, 0.3, 0.4, 100, kUseful) == doctest::Approx(0.4));
  // They work now, and have written a fifth of all that is useful.
  CHECK(limit.next(0.2, 0.38, 0, 300, kUseful) == doctest::Approx(0.35));
  CHECK(limit.next(0.2, 0.5, 0, 4000, kUseful) == doctest::Approx(0.2));
  CHECK(limit.next(0.2, 0.3, 0.4, 4000, kUseful) == doctest::Approx(0.4));
}

}  // namespace
}  // namespace edgecase::engine
