#include "expiry/expiry_clock.h"

#include <algorithm>
#include <cstdlib>

namespace edgecase::engine {

std::int64_t ExpiryClock::now_ns() {
  MutexLock lock(mutex_);
  if (clock_.trust() != ClockTrust::Trusted) return now_ns_;
  const std::int64_t wall_ns = clock_.wall_ns();
  const std::int64_t boot_ns = clock_.boot_ns();
  // What the clock would show had nobody set it. The first time it is believed: the machine may
  // have been off for long.
  const std::int64_t expected_ns = wall_ns_ ? *wall_ns_ + (boot_ns - boot_ns_) : wall_ns;
  if (wall_ns - expected_ns <= kJumpMaxNs) {
    jump_offset_ns_.reset();
  } else {
    const std::int64_t offset_ns = wall_ns - boot_ns;
    if (!jump_offset_ns_ || std::abs(offset_ns - *jump_offset_ns_) > kJumpMaxNs) {
      jump_offset_ns_ = offset_ns;
      jump_boot_ns_ = boot_ns;
    }
    if (boot_ns - jump_boot_ns_ < kJumpSettleNs) {
      now_ns_ = std::max(now_ns_, expected_ns);
      return now_ns_;
    }
    jump_offset_ns_.reset();
  }
  wall_ns_ = wall_ns;
  boot_ns_ = boot_ns;
  now_ns_ = std::max(now_ns_, wall_ns);
  return now_ns_;
}

}  // namespace edgecase::engine
