// Sets memory for tables aside in the engine, which is told in steps. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "edgecase/engine.h"
#include "edgecase/mutex.h"

namespace edgecase::catalog {

class SetAside {
 public:
  static constexpr std::uint64_t kStepBytes = 256u << 10;

  explicit SetAside(Engine& engine) : engine_(engine) {}

  void tell(std::uint64_t bytes) EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (std::max(bytes, told_bytes_) - std::min(bytes, told_bytes_) < kStepBytes) return;
    engine_.set_aside(told_bytes_, bytes);
    told_bytes_ = bytes;
  }

 private:
  Engine& engine_;
  Mutex mutex_;
  std::uint64_t told_bytes_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::catalog
