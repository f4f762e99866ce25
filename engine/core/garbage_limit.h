// GarbageLimit says from which garbage share on writers are slowed down. A store that stops growing
// may hold far more garbage than one that does not grow may. Its writers then go on as fast as
// merges keep the garbage from growing, a little slower, until it is down. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace edgecase::engine {

class GarbageLimit {
 public:
  // Now: `natural` is the limit of a store as this one is, `garbage` what it holds, both bytes a
  // useful byte; `idle` what it may hold because nothing of it was worth cleaning when merges last
  // looked, 0 if something was; `written_bytes` is what flushes wrote so far.
  double next(double natural, double garbage, double idle, std::uint64_t written_bytes,
              std::uint64_t useful_bytes) {
    const double written = static_cast<double>(written_bytes - written_bytes_) /
                           static_cast<double>(std::max<std::uint64_t>(1, useful_bytes));
    written_bytes_ = written_bytes;
    const double fallen = kFallenAWrittenByte * written;
    limit_ = std::max(natural, std::min(limit_, garbage) - fallen);
    idle_limit_ = std::max(idle, idle_limit_ - fallen);
    return std::max(limit_, idle_limit_);
  }

 private:
  // The limit falls by so much while all that is useful is written once.
  static constexpr double kFallenAWrittenByte = 0.25;

  double limit_ = 0;
  double idle_limit_ = 0;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace edgecase::engine
