// The time by which entries expire: wall time as far as it is to be trusted. It never goes back,
// and stands still while the clock is not trusted. A clock that is further ahead than kJumpMaxNs of
// what time has passed since it was followed last, in this process or by the store's mark, is
// followed when a time server confirms it, or after kJumpSettleNs; until then time goes on as it
// did.
//
// Two times: by the one entries are hidden, by the other their bytes go. The other lags behind by
// what the clock has leapt forward without confirmation, until that is accepted. While it does, a
// clock that is set back takes both back, no further than the other: what was hidden by a wrong
// clock is there again. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "edgecase/clock.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "expiry/bucket.h"

namespace edgecase::engine {

class ExpiryClock {
 public:
  static constexpr std::int64_t kJumpMaxNs = 3'600'000'000'000;
  static constexpr std::int64_t kJumpSettleNs = 3'600'000'000'000;
  // What is less may come from reading two clocks one after the other.
  static constexpr std::int64_t kLeapMinNs = 1'000'000'000;

  struct Reading {
    std::int64_t now_ns = kNoMarkNs;
    std::int64_t lag_ns = 0;
    ExpiryWait wait = ExpiryWait::None;
    std::int64_t wait_since_boot_ns = 0;

    std::int64_t removal_ns() const { return now_ns - lag_ns; }
  };

  // `mark_ns`: what the store knows was reached before.
  ExpiryClock(Clock& clock, std::int64_t mark_ns);

  Reading read();
  std::int64_t now_ns() { return read().now_ns; }
  std::int64_t removal_ns() { return read().removal_ns(); }
  // Gives up this much of the lag.
  void accept(std::int64_t lag_ns);

 private:
  void follow() EC_REQUIRES(mutex_);
  bool is_followed(std::int64_t wall_ns, std::int64_t boot_ns, std::int64_t expected_ns)
      EC_REQUIRES(mutex_);
  void note(ExpiryWait wait, std::int64_t boot_ns) EC_REQUIRES(mutex_);

  Clock& clock_;
  Mutex mutex_;
  Reading reading_ EC_GUARDED_BY(mutex_);
  // The last time that was taken over from the wall, and when that was.
  std::optional<std::int64_t> wall_ns_ EC_GUARDED_BY(mutex_);
  std::int64_t boot_ns_ EC_GUARDED_BY(mutex_) = 0;
  // A jump that is waited for: wall - boot, and since when.
  std::optional<std::int64_t> jump_offset_ns_ EC_GUARDED_BY(mutex_);
  std::int64_t jump_boot_ns_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::engine
