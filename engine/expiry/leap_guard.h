// LeapGuard bounds how much may go because the clock leapt forward and nobody confirmed it: a share
// of all bytes in kLeapHoldNs. The rest is held for as long; meanwhile somebody may notice, or a
// time server set the clock right. Then it goes. A new process goes on with the time that was left.
// Entries that expire as time passes are not asked for here, nor those that a rule lets expire.
// Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "edgecase/mutex.h"

namespace edgecase::engine {

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
