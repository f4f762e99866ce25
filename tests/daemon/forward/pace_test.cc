#include "forward/pace.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace edgecase::forward {
namespace {

constexpr std::int64_t kPaceSecondNs = 1'000'000'000;

TEST_CASE("pace: what is no answer is rested after, by what it says") {
  SeededRandom random(1);
  Pace pace(random, false, 0);
  CHECK(pace.rest_ns({.verdict = Verdict::Denied}) == Pace::kDeniedNs);
  CHECK(pace.rest_ns({.verdict = Verdict::Wrong}) == Pace::kDeniedNs);
  CHECK(pace.rest_ns({.verdict = Verdict::Stopped}) == 0);
  std::int64_t longest_ns = 0;
  for (int i = 0; i < 100; ++i)
    longest_ns = std::max(longest_ns, pace.rest_ns({.verdict = Verdict::Away}));
  CHECK(longest_ns > 30 * kPaceSecondNs);
  CHECK(longest_ns <= net::Backoff::kMaxNs);
  pace.hurry();
  CHECK(pace.rest_ns({.verdict = Verdict::Away}) <= net::Backoff::kFirstNs);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t rest_ns = pace.rest_ns(
        {.verdict = Verdict::Later, .status = 429, .why = {}, .retry_after_ns = 8 * kPaceSecondNs});
    CHECK(rest_ns >= 8 * kPaceSecondNs);
    CHECK(rest_ns <= 10 * kPaceSecondNs);
  }
}

TEST_CASE("pace: one on this machine is tried each second") {
  SeededRandom random(1);
  Pace pace(random, true, 0);
  for (int i = 0; i < 100; ++i)
    CHECK(pace.rest_ns({.verdict = Verdict::Away}) <= net::Backoff::kLocalMaxNs);
}

TEST_CASE("pace: batches halve where requests take long, and grow in steps") {
  SeededRandom random(1);
  Pace pace(random, false, 0);
  CHECK(pace.lines_max() == Batch::kLinesMax);
  pace.taken(3 * kPaceSecondNs);
  CHECK(pace.lines_max() == Batch::kLinesMax / 2);
  for (int i = 0; i < 20; ++i) pace.rest_ns({.verdict = Verdict::Away});
  CHECK(pace.lines_max() == Pace::kLinesMin);
  pace.rest_ns({.verdict = Verdict::Later});
  pace.taken(1);
  CHECK(pace.lines_max() == Pace::kLinesMin + Pace::kLinesStep);
  for (int i = 0; i < 100; ++i) pace.taken(1);
  CHECK(pace.lines_max() == Batch::kLinesMax);
}

TEST_CASE("pace: commits gather for as long as a request takes") {
  SeededRandom random(1);
  Pace pace(random, false, 0);
  CHECK(pace.gather_ns() == Pace::kGatherNs);
  pace.sent(0, kPaceSecondNs / 2, 0);
  CHECK(pace.gather_ns() == kPaceSecondNs / 2);
  pace.sent(0, 60 * kPaceSecondNs, 0);
  CHECK(pace.gather_ns() == Pace::kGatherMaxNs);
}

TEST_CASE("pace: a budget holds over batches, and saves nothing up") {
  SeededRandom random(1);
  Pace pace(random, false, 1000);
  pace.sent(10 * kPaceSecondNs, 1, 500);
  CHECK(pace.budget_until_ns() == 10 * kPaceSecondNs + kPaceSecondNs / 2);
  pace.sent(10 * kPaceSecondNs, 1, 500);
  CHECK(pace.budget_until_ns() == 11 * kPaceSecondNs);
  pace.sent(20 * kPaceSecondNs, 1, 1000);
  CHECK(pace.budget_until_ns() == 21 * kPaceSecondNs);
}

}  // namespace
}  // namespace edgecase::forward
