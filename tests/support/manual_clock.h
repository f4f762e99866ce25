// A clock that stands still until a test moves it. Thread-safe.
#pragma once

#include <atomic>

#include "edgecase/machine.h"

namespace edgecase::test {

class ManualClock final : public Clock {
 public:
  static constexpr std::int64_t kStartWallNs = 1'763'647'200'000'000'000;  // 2025-11-20T14:00:00Z

  std::int64_t wall_ns() const override { return wall_ns_; }
  std::int64_t boot_ns() const override { return boot_ns_; }
  ClockTrust trust() const override { return trust_; }
  bool synchronised() const override { return synchronised_; }

  // Time passes: both clocks move.
  void advance(std::int64_t ns) {
    wall_ns_ += ns;
    boot_ns_ += ns;
  }
  // Somebody sets the clock: wall time jumps, boot time does not.
  void set_wall_ns(std::int64_t ns) { wall_ns_ = ns; }
  void set_trust(ClockTrust trust) { trust_ = trust; }
  void set_synchronised(bool synchronised) { synchronised_ = synchronised; }

 private:
  std::atomic<std::int64_t> wall_ns_{kStartWallNs};
  std::atomic<std::int64_t> boot_ns_{60'000'000'000};
  std::atomic<ClockTrust> trust_{ClockTrust::Trusted};
  std::atomic<bool> synchronised_{false};
};

}  // namespace edgecase::test
