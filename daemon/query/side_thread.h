// One thread more for questions that read much: it does a part of one of them at a time, beside the
// thread that answers. Made when it is first wanted. Thread-safe.
#pragma once

#include <functional>
#include <thread>

#include "edgecase/mutex.h"

namespace edgecase::query {

class SideThread {
 public:
  SideThread() = default;
  // Nobody starts anything any more; waits for what was started.
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Has `job`, which does not throw, done there. False: it is at work for somebody else, or there
  // is no thread to be had.
  bool try_start(std::function<void()> job) EC_EXCLUDES(mutex_);

 private:
  void work() EC_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar called_;
  std::function<void()> job_ EC_GUARDED_BY(mutex_);
  bool is_busy_ EC_GUARDED_BY(mutex_) = false;
  bool is_ending_ EC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace edgecase::query
