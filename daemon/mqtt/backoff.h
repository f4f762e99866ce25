// How long to wait before the next attempt to reach the broker: full jitter, so that many clients
// of a broker that comes back do not all arrive at once. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "edgecase/random.h"

namespace edgecase::mqtt {

class Backoff {
 public:
  static constexpr std::int64_t kFirstNs = 500'000'000;
  static constexpr std::int64_t kMaxNs = 60'000'000'000;
  static constexpr std::int64_t kLeastNs = 20'000'000;  // never a busy loop

  explicit Backoff(Random& random) : random_(random) {}

  // Uniform between kLeastNs and a bound that starts at kFirstNs and doubles up to kMaxNs.
  std::int64_t next_ns() {
    const std::int64_t bound = bound_ns_;
    bound_ns_ = std::min(bound * 2, kMaxNs);
    const auto span = static_cast<std::uint64_t>(bound - kLeastNs);
    return kLeastNs + static_cast<std::int64_t>(random_.next() % (span + 1));
  }
  void reset() { bound_ns_ = kFirstNs; }

 private:
  Random& random_;
  std::int64_t bound_ns_ = kFirstNs;
};

}  // namespace edgecase::mqtt
