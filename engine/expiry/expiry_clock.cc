#include "expiry/expiry_clock.h"

#include <algorithm>
#include <cstdlib>

namespace edgecase::engine {

ExpiryClock::ExpiryClock(Clock& clock, std::int64_t mark_ns) : clock_(clock) {
  reading_.now_ns = mark_ns;
  // How long the machine was off nobody knows: the first reading may be a jump like others.
  if (mark_ns == kNoMarkNs) return;
  wall_ns_ = mark_ns;
  boot_ns_ = clock.boot_ns();
}

ExpiryClock::Reading ExpiryClock::read() {
  MutexLock lock(mutex_);
  follow();
  return reading_;
}

void ExpiryClock::accept(std::int64_t lag_ns) {
  MutexLock lock(mutex_);
  reading_.lag_ns = std::max<std::int64_t>(reading_.lag_ns - lag_ns, 0);
}

void ExpiryClock::note(ExpiryWait wait, std::int64_t boot_ns) {
  if (reading_.wait != wait) reading_.wait_since_boot_ns = boot_ns;
  reading_.wait = wait;
}

void ExpiryClock::follow() {
  const std::int64_t boot_ns = clock_.boot_ns();
  if (clock_.trust() != ClockTrust::Trusted) return note(ExpiryWait::Untrusted, boot_ns);
  const std::int64_t wall_ns = clock_.wall_ns();
  std::int64_t& now_ns = reading_.now_ns;
  std::int64_t& lag_ns = reading_.lag_ns;
  if (lag_ns > 0 && now_ns - wall_ns > kJumpMaxNs) {
    const std::int64_t removal_ns = reading_.removal_ns();
    now_ns = std::max(wall_ns, removal_ns);
    lag_ns = now_ns - removal_ns;
    wall_ns_.reset();
  }
  // What the clock would show had nobody set it.
  const std::int64_t expected_ns = wall_ns_ ? *wall_ns_ + (boot_ns - boot_ns_) : wall_ns;
  const std::int64_t known_ns = std::max(expected_ns, now_ns);
  if (!is_followed(wall_ns, boot_ns, known_ns)) {
    now_ns = known_ns;
    return note(ExpiryWait::Jump, boot_ns);
  }
  note(ExpiryWait::None, boot_ns);
  if (wall_ns - known_ns >= kLeapMinNs) lag_ns += wall_ns - known_ns;
  if (lag_ns > 0 && clock_.synchronised()) lag_ns = 0;
  jump_offset_ns_.reset();
  wall_ns_ = wall_ns;
  boot_ns_ = boot_ns;
  now_ns = std::max(now_ns, wall_ns);
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
