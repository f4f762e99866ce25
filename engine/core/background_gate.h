// Between the engine and its background tasks: a task that runs after the engine has gone must find
// out without touching it. Shared by the engine and every task it scheduled. Thread-safe.
#pragma once

#include "edgecase/mutex.h"

namespace edgecase::engine {

class BackgroundGate {
 public:
  // False once closed. Each true needs a leave().
  bool enter() {
    MutexLock lock(mutex_);
    if (closed_) return false;
    ++inside_;
    return true;
  }
  void leave() {
    MutexLock lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
  }
  bool closed() const {
    MutexLock lock(mutex_);
    return closed_;
  }
  // Lets nobody in any more and waits for those inside.
  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
    while (inside_ > 0) empty_.wait(mutex_);
  }

 private:
  mutable Mutex mutex_;
  CondVar empty_;
  bool closed_ EC_GUARDED_BY(mutex_) = false;
  int inside_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::engine
