// How long what failed waits.
#include "compaction/retry_delay.h"

#include <doctest/doctest.h>

namespace edgecase::engine {
namespace {

constexpr std::int64_t kOneSecondNs = 1'000'000'000;

}  // namespace

TEST_CASE("what fails waits twice as long each time, a minute at most, until it succeeds") {
  RetryDelay retry;
  CHECK(retry.left_ns(0) <= 0);
  std::int64_t now_ns = 5 * kOneSecondNs;
  for (const std::int64_t want_s : {1, 2, 4, 8, 16, 32, 60, 60}) {
    CHECK(retry.note_failure(now_ns) == want_s * kOneSecondNs);
    CHECK(retry.left_ns(now_ns) == want_s * kOneSecondNs);
    now_ns += want_s * kOneSecondNs;
    CHECK(retry.left_ns(now_ns) == 0);
  }
  retry.note_success();
  CHECK(retry.note_failure(now_ns) == kOneSecondNs);
}

TEST_CASE(
    "what somebody waits for is tried at once, and its next failure waits longer all the same") {
  RetryDelay retry;
  CHECK(retry.note_failure(0) == kOneSecondNs);
  retry.end_wait();
  CHECK(retry.left_ns(1) <= 0);
  CHECK(retry.note_failure(1) == 2 * kOneSecondNs);
}

}  // namespace edgecase::engine
