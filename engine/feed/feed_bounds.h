// The positions that feeds stand at, for all that write entries again (Engine::set_feed_bounds).
// Thread-safe; its mutex is held for a copy of a pointer.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "edgecase/mutex.h"
#include "feed/raise_limits.h"

namespace edgecase::engine {

class FeedBounds {
 public:
  // `expected`: somebody will say where feeds stand (Options::feeds); nothing rises until then.
  explicit FeedBounds(bool expected)
      : limits_(std::make_shared<const RaiseLimits>(expected ? RaiseLimits::none_rises()
                                                             : RaiseLimits())) {}

  void set(std::vector<SequenceNumber> bounds) EC_EXCLUDES(mutex_) {
    auto limits = bounds.empty() ? std::make_shared<const RaiseLimits>()
                                 : std::make_shared<const RaiseLimits>(std::move(bounds));
    MutexLock lock(mutex_);
    limits_ = std::move(limits);
  }

  RaiseLimits limits() const EC_EXCLUDES(mutex_) {
    std::shared_ptr<const RaiseLimits> limits;
    {
      MutexLock lock(mutex_);
      limits = limits_;
    }
    return *limits;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const RaiseLimits> limits_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
