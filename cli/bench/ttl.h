// ttl: every key expires, a fifth of them at one instant, the others five days later. How long the
// fifth can still be read, and how long its bytes are still on the drives. Here is what stores of
// another make are given, too (edgecase-bench-peers: Redis).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/child_process.h"
#include "bench/interrupt.h"
#include "edgecase/clock.h"
#include "edgecase/random.h"

namespace edgecase::cli::bench {

inline constexpr std::uint64_t kTtlEarlyOneIn = 5;
inline constexpr std::uint64_t kTtlKeysPerBatch = 1'000;
inline constexpr std::int64_t kTtlSecondNs = 1'000'000'000;
inline constexpr std::int64_t kTtlLateNs = 5 * 86'400 * kTtlSecondNs;  // after the others
inline constexpr std::int64_t kTtlLeadNs = 3 * kTtlSecondNs;  // to put the keys, before the instant
inline constexpr std::uint64_t kTtlSlowKeysPerSecond = 40'000;
inline constexpr std::string_view kTtlMarker = "expires-early.";  // in no other bytes

inline std::int64_t wall_now_ns() {
  return system_clock().wall_ns();
}
inline bool expires_early(std::uint64_t number) {
  return number % kTtlEarlyOneIn == 0;
}
inline std::uint64_t early_keys(std::uint64_t keys) {
  return (keys + kTtlEarlyOneIn - 1) / kTtlEarlyOneIn;
}
// When so many keys are to expire that are put from now on.
inline std::int64_t ttl_instant_ns(std::uint64_t keys,
                                   double keys_per_second = kTtlSlowKeysPerSecond) {
  return wall_now_ns() + kTtlLeadNs +
         static_cast<std::int64_t>(static_cast<double>(keys) / keys_per_second * kTtlSecondNs);
}
// Cancelled on Ctrl-C.
inline Status wait_until_wall(std::int64_t time_ns) {
  while (wall_now_ns() < time_ns) {
    EC_TRY(check_interrupt());
    sleep_ms(1);
  }
  return ok();
}

// First bytes tell early from late, the others cannot be compressed.
class TtlValues {
 public:
  TtlValues(std::uint64_t seed, std::uint32_t bytes) : random_(seed), bytes_(bytes) {}
  std::string next(bool early) {
    std::string value = early ? std::string(kTtlMarker) : "expires-late.";
    while (value.size() < bytes_) {
      std::uint64_t bits = random_.next();
      for (int i = 0; i < 8 && value.size() < bytes_; ++i, bits >>= 8)
        value += static_cast<char>(bits);
    }
    return value;
  }

 private:
  SeededRandom random_;
  const std::uint32_t bytes_;
};

}  // namespace edgecase::cli::bench
