// The wait before the next attempt to reach a broker or a target: full jitter, so that many clients
// of one that comes back do not all arrive at once. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "edgecase/random.h"

namespace edgecase::net {

class Backoff {
 public:
  static constexpr std::int64_t kFirstNs = 500'000'000;
  static constexpr std::int64_t kMaxNs = 60'000'000'000;
  static constexpr std::int64_t kLocalMaxNs = 1'000'000'000;  // of one on this machine
  static constexpr std::int64_t kLeastNs = 20'000'000;        // never a busy loop

  explicit Backoff(Random& random) : random_(random) {}

  // Uniform between kLeastNs and a bound that starts at kFirstNs and doubles up to kMaxNs, and is
  // never over `max_ns`.
  std::int64_t next_ns(std::int64_t max_ns = kMaxNs) {
    const std::int64_t bound = std::min(bound_ns_, max_ns);
    bound_ns_ = std::min(bound_ns_ * 2, kMaxNs);
    const auto span = static_cast<std::uint64_t>(bound - kLeastNs);
    return kLeastNs + static_cast<std::int64_t>(random_.next() % (span + 1));
  }
  void reset() { bound_ns_ = kFirstNs; }

 private:
  Random& random_;
  std::int64_t bound_ns_ = kFirstNs;
};

}  // namespace edgecase::net
