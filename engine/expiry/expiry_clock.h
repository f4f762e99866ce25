// The time by which entries expire: ExpiryClock follows wall time as far as it is to be trusted,
// and LeapGuard holds back what a leap of it would let go. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "edgecase/clock.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "expiry/retention_rules.h"

namespace edgecase::engine {

// It never goes back, and stands still while the clock is not trusted. A clock that is further
// ahead than kJumpMaxNs of what time has passed since it was followed last, in this process or by
// the store's mark, is followed when a time server confirms it, or after kJumpSettleNs; until then
// time goes on as it did.
//
// Two times: by the one entries are hidden, by the other their bytes go. The other lags behind by
// what the clock has leapt forward without confirmation, until that is accepted. While it does, a
// clock that is set back takes both back, no further than the other: what was hidden by a wrong
// clock is there again.
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

// Bounds how much may go because the clock leapt forward and nobody confirmed it: a share
// of all bytes in kLeapHoldNs. The rest is held for as long; meanwhile somebody may notice, or a
// time server set the clock right. Then it goes. A new process goes on with the time that was left.
// Entries that expire as time passes are not asked for here, nor those that a rule lets expire.
// Thread-safe.

inline constexpr std::uint64_t kLeapBytesMin = 1u << 20;  // less is no alarm
inline constexpr std::uint64_t kLeapShare = 4;            // a quarter of all bytes
inline constexpr std::int64_t kLeapHoldNs = 24LL * 3600 * 1'000'000'000;

class LeapGuard {
 public:
  // For so long others before have held what a leap let expire.
  void resume(std::uint64_t held_ns) {
    held_before_ns_ = static_cast<std::int64_t>(std::min<std::uint64_t>(held_ns, kLeapHoldNs));
  }
  // `leapt_bytes` of `all_bytes` are due only since the clock leapt. True: they may go.
  bool judge(std::uint64_t leapt_bytes, std::uint64_t all_bytes, std::int64_t boot_ns) {
    MutexLock lock(mutex_);
    const bool waited = held_bytes_ > 0 && boot_ns - held_since_boot_ns_ >= kLeapHoldNs;
    if (waited || boot_ns - judged_boot_ns_ >= kLeapHoldNs) {
      judged_boot_ns_ = boot_ns;
      gone_bytes_ = 0;
    }
    const std::uint64_t bytes_max = std::max(kLeapBytesMin, all_bytes / kLeapShare);
    if (leapt_bytes == 0 || waited || gone_bytes_ + leapt_bytes <= bytes_max) {
      gone_bytes_ += waited ? 0 : leapt_bytes;
      held_bytes_ = 0;
      held_before_ns_ = 0;
      return true;
    }
    if (held_bytes_ == 0) held_since_boot_ns_ = boot_ns - held_before_ns_;
    held_bytes_ = leapt_bytes;
    return false;
  }

  std::uint64_t held_bytes() const { return held_bytes_; }  // 0: nothing is held
  std::int64_t held_since_boot_ns() const { return held_since_boot_ns_; }
  // For resume().
  std::uint64_t held_ns(std::int64_t boot_ns) const {
    const std::int64_t ns =
        held_bytes_ > 0 ? boot_ns - held_since_boot_ns_ : held_before_ns_.load();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
  }

 private:
  Mutex mutex_;
  std::int64_t judged_boot_ns_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t gone_bytes_ EC_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> held_bytes_ = 0;
  std::atomic<std::int64_t> held_since_boot_ns_ = 0;
  std::atomic<std::int64_t> held_before_ns_ = 0;
};

}  // namespace edgecase::engine
