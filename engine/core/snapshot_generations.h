// Tells when every snapshot that was taken before some moment has gone. Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "edgecase/mutex.h"

namespace edgecase::engine {

class SnapshotGenerations {
 public:
  // A snapshot takes it before it looks at the store, and holds it as long as it is there itself.
  std::shared_ptr<const void> current() const {
    MutexLock lock(mutex_);
    return current_;
  }
  // Begins another; expires once nobody holds the one until now, or one before it.
  std::weak_ptr<const void> turn() {
    auto next = std::make_shared<Generation>();
    MutexLock lock(mutex_);
    current_->next = next;
    return std::exchange(current_, std::move(next));
  }

 private:
  // Each keeps those that follow.
  struct Generation {
    std::shared_ptr<const Generation> next;
  };
  mutable Mutex mutex_;
  std::shared_ptr<Generation> current_ EC_GUARDED_BY(mutex_) = std::make_shared<Generation>();
};

}  // namespace edgecase::engine
