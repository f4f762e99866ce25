#include "expiry/expiry_clock.h"

#include <algorithm>
#include <cstdlib>

namespace edgecase::engine {

ExpiryClock::ExpiryClock(Clock& clock, std::int64_t mark_ns) : clock_(clock), now_ns_(mark_ns) {
  // How long the machine was off nobody knows: the first reading may be a jump like others.
  if (mark_ns == kNoMarkNs) return;
  wall_ns_ = mark_ns;
  boot_ns_ = clock.boot_ns();
}

std::int64_t ExpiryClock::now_ns() {
  MutexLock lock(mutex_);
  if (clock_.trust() != ClockTrust::Trusted) return now_ns_;
  const std::int64_t wall_ns = clock_.wall_ns();
  const std::int64_t boot_ns = clock_.boot_ns();
  // What the clock would show had nobody set it.
  const std::int64_t expected_ns = wall_ns_ ? *wall_ns_ + (boot_ns - boot_ns_) : wall_ns;
  if (!is_followed(wall_ns, boot_ns, std::max(expected_ns, now_ns_))) {
    now_ns_ = std::max(now_ns_, expected_ns);
    return now_ns_;
  }
  jump_offset_ns_.reset();
  wall_ns_ = wall_ns;
  boot_ns_ = boot_ns;
  now_ns_ = std::max(now_ns_, wall_ns);
  return now_ns_;
}

bool ExpiryClock::is_followed(std::int64_t wall_ns, std::int64_t boot_ns,
                              std::int64_t expected_ns) {
  if (wall_ns - expected_ns <= kJumpMaxNs) return true;
  const std::int64_t offset_ns = wall_ns - boot_ns;
  if (!jump_offset_ns_ || std::abs(offset_ns - *jump_offset_ns_) > kJumpMaxNs) {
    jump_offset_ns_ = offset_ns;
    jump_boot_ns_ = boot_ns;
  }
  return boot_ns - jump_boot_ns_ >= kJumpSettleNs || clock_.synchronised();
}

}  // namespace edgecase::engine
