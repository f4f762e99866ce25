// The engine's background tasks: each runs on a lane of the executor, and none once the engine is
// about to go. A task that comes up later must find that out without touching the engine: it shares
// a gate with it.
// Use: schedule(); close() first in the destructor of whoever owns what tasks use. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "edgecase/executor.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

class BackgroundTasks {
 public:
  explicit BackgroundTasks(Executor& executor) : executor_(executor) {}

  void schedule(Lane lane, std::function<void()> task) {
    executor_.schedule(lane, behind_gate(std::move(task)));
  }
  void schedule_after(Lane lane, std::int64_t delay_ns, std::function<void()> task) {
    executor_.schedule_after(lane, delay_ns, behind_gate(std::move(task)));
  }
  // As Executor::run_one(), for a caller that waits for one of these tasks.
  bool run_one() { return executor_.run_one(); }

  bool closed() const { return gate_->closed(); }
  // Lets no task begin any more and waits for those that run.
  void close() { gate_->close(); }

 private:
  class Gate {
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

  std::function<void()> behind_gate(std::function<void()> task) {
    return [gate = gate_, task = std::move(task)] {
      if (!gate->enter()) return;
      task();
      gate->leave();
    };
  }

  Executor& executor_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

}  // namespace edgecase::engine
