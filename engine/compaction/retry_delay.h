// RetryDelay says how long failed work waits before it is tried again: 1 s, 2 s, 4 s, ... 60 s,
// until it succeeds. Times are of Clock::boot_ns(). The owner guards it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace edgecase::engine {

class RetryDelay {
 public:
  // A drive that was busy or away for a moment is tried soon; one that stays away costs a look a
  // minute.
  static constexpr std::int64_t kMinNs = 1'000'000'000;
  static constexpr std::int64_t kMaxNs = 60'000'000'000;

  // Answers how long it waits.
  std::int64_t note_failure(std::int64_t now_ns) {
    delay_ns_ = std::clamp(2 * delay_ns_, kMinNs, kMaxNs);
    not_before_ns_ = now_ns + delay_ns_;
    return delay_ns_;
  }
  void note_success() { delay_ns_ = 0; }
  // Somebody waits for it: its next try is now.
  void end_wait() { not_before_ns_ = 0; }
  // Not above 0: it may be tried.
  std::int64_t left_ns(std::int64_t now_ns) const { return not_before_ns_ - now_ns; }

 private:
  std::int64_t delay_ns_ = 0;
  std::int64_t not_before_ns_ = 0;
};

}  // namespace edgecase::engine
