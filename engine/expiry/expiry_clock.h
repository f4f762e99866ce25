// The time by which entries expire: wall time as far as it is to be trusted. It never goes back,
// and stands still while the clock is not trusted. A clock that was set forward by more than
// kJumpMaxNs is followed only after kJumpSettleNs; until then time goes on as it did. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "edgecase/clock.h"

namespace edgecase::engine {

class ExpiryClock {
 public:
  static constexpr std::int64_t kJumpMaxNs = 3'600'000'000'000;
  static constexpr std::int64_t kJumpSettleNs = 3'600'000'000'000;

  // `mark_ns`: what the store knows was reached before.
  ExpiryClock(Clock& clock, std::int64_t mark_ns) : clock_(clock), now_ns_(mark_ns) {}

  std::int64_t now_ns();
  // Whether time goes on.
  bool trusted() const { return clock_.trust() == ClockTrust::Trusted; }

 private:
  Clock& clock_;
  Mutex mutex_;
  std::int64_t now_ns_ EC_GUARDED_BY(mutex_);
  // The last time that was taken over from the wall, and when that was.
  std::optional<std::int64_t> wall_ns_ EC_GUARDED_BY(mutex_);
  std::int64_t boot_ns_ EC_GUARDED_BY(mutex_) = 0;
  // A jump that is waited for: wall - boot, and since when.
  std::optional<std::int64_t> jump_offset_ns_ EC_GUARDED_BY(mutex_);
  std::int64_t jump_boot_ns_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::engine
