// The pace of one target: when it is asked, and for how much at once. Rests after no answer, the
// budget of the link, how long commits gather, and how many lines a batch has. It goes by the
// times that it is given, so that a fleet can be simulated (tests/bench/fleet/). One thread.
//
//   a request that took long ─► the next waits as long, has half as many lines
//   none, or one too many    ─► full jitter up to 60 s, or Retry-After and up to a quarter more
//
// Each has one request on its way: together they ask for what a target takes, however many they
// are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "edgecase/random.h"
#include "forward/answer.h"
#include "forward/batch.h"
#include "net/backoff.h"

namespace edgecase::forward {

class Pace {
 public:
  static constexpr std::int64_t kGatherNs = 10'000'000, kGatherMaxNs = 1'000'000'000;
  static constexpr std::int64_t kDeniedNs = 60'000'000'000;
  static constexpr std::int64_t kStaleNs = 5'000'000;  // what was read is read again
  static constexpr std::int64_t kSlowNs = 2'000'000'000;
  static constexpr std::size_t kLinesMin = 256, kLinesStep = 512;

  // `random` outlives it. `budget`: bytes a second; 0: whatever the link takes.
  Pace(Random& random, bool is_local, std::uint64_t budget)
      : backoff_(random), random_(random), is_local_(is_local), budget_(budget) {}

  // A batch was sent, whatever came of it.
  void sent(std::int64_t now_ns, std::int64_t took_ns, std::uint64_t bytes);
  // It was taken.
  void taken(std::int64_t took_ns);
  // For how long nothing is sent after an answer that was none.
  std::int64_t rest_ns(const Answer& answer);
  // Somebody says that it can be reached.
  void hurry() { backoff_.reset(); }

  std::int64_t budget_until_ns() const { return budget_until_ns_; }
  std::int64_t gather_ns() const { return std::clamp(took_ns_, kGatherNs, kGatherMaxNs); }
  std::size_t lines_max() const { return lines_max_; }

 private:
  void halve() { lines_max_ = std::max(lines_max_ / 2, kLinesMin); }

  net::Backoff backoff_;
  Random& random_;
  const bool is_local_;
  const std::uint64_t budget_;
  std::int64_t budget_until_ns_ = 0, took_ns_ = 0;
  std::size_t lines_max_ = Batch::kLinesMax;
};

}  // namespace edgecase::forward
