#include "net/backoff.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("backoff: bounds double from half a second to a minute, and jitter fills them") {
  SeededRandom random(7);
  net::Backoff backoff(random);
  std::int64_t bound = net::Backoff::kFirstNs;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t pause = backoff.next_ns();
    CHECK(pause >= net::Backoff::kLeastNs);
    CHECK(pause <= bound);
    bound = std::min(bound * 2, net::Backoff::kMaxNs);
  }
  std::int64_t longest = 0;
  for (int i = 0; i < 200; ++i) longest = std::max(longest, backoff.next_ns());
  CHECK(longest > net::Backoff::kMaxNs * 9 / 10);
  for (int i = 0; i < 200; ++i) {
    CHECK(backoff.next_ns(net::Backoff::kLocalMaxNs) <= net::Backoff::kLocalMaxNs);
  }
  backoff.reset();
  CHECK(backoff.next_ns() <= net::Backoff::kFirstNs);
}
