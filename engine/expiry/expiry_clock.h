// The time by which entries expire: wall time as far as it is to be trusted. It never goes back,
// and stands still while the clock is not trusted. A clock that is further ahead than kJumpMaxNs of
// what time has passed since it was followed last, in this process or by the store's mark, is
// followed when a time server confirms it, or after kJumpSettleNs; until then time goes on as it
// did. Thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/mutex.h"
#include "edgecase/clock.h"

namespace edgecase::engine {

// What a store holds that has never known a time.
inline constexpr std::int64_t kNoMarkNs = std::numeric_limits<std::int64_t>::min();

class ExpiryClock {
 public:
  static constexpr std::int64_t kJumpMaxNs = 3'600'000'000'000;
  static constexpr std::int64_t kJumpSettleNs = 3'600'000'000'000;

  // `mark_ns`: what the store knows was reached before.
  ExpiryClock(Clock& clock, std::int64_t mark_ns);

  std::int64_t now_ns();

 private:
  bool is_followed(std::int64_t wall_ns, std::int64_t boot_ns, std::int64_t expected_ns)
      EC_REQUIRES(mutex_);

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
