#include "edgecase/options.h"

#include <pthread.h>

#include <chrono>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "edgecase/mutex.h"
#include "edgecase/secrets.h"

namespace edgecase {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using Task = std::function<void()>;

// One thread and its queue. Delayed tasks join the queue when they are due.
class LaneThread {
 public:
  explicit LaneThread(const char* name) : thread_([this] { run(); }) {
    pthread_setname_np(thread_.native_handle(), name);
  }

  // Runs what is queued, drops what is delayed. A task may still schedule more while this waits.
  void stop() EC_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }

  void schedule(Task task) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ready_.push_back(std::move(task));
    wake_.notify_one();
  }

  void schedule_at(SteadyTime due, Task task) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    delayed_.emplace(due, std::move(task));
    wake_.notify_one();
  }

 private:
  void run() EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (;;) {
      const SteadyTime now = std::chrono::steady_clock::now();
      while (!delayed_.empty() && delayed_.begin()->first <= now) {
        ready_.push_back(std::move(delayed_.begin()->second));
        delayed_.erase(delayed_.begin());
      }
      if (!ready_.empty()) {
        Task task = std::move(ready_.front());
        ready_.pop_front();
        lock.unlock();
        task();
        task = nullptr;  // what it holds goes before the lock comes back
        has_run_ = true;
        lock.lock();
      } else if (stopping_) {
        return;
      } else if (std::exchange(has_run_, false)) {
        lock.unlock();
        wipe_stack();
        lock.lock();
      } else if (delayed_.empty()) {
        wake_.wait(mutex_);
      } else {
        const auto rest = delayed_.begin()->first - now;
        wake_.wait_for(mutex_, std::chrono::nanoseconds(rest).count());
      }
    }
  }

  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> ready_ EC_GUARDED_BY(mutex_);
  std::multimap<SteadyTime, Task> delayed_ EC_GUARDED_BY(mutex_);
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  bool has_run_ = false;  // the thread's: since its stack was wiped
  std::thread thread_;    // last: it uses all the others
};

class ThreadExecutor final : public Executor {
 public:
  // The flush lane first: its last tasks may hand work to the other one.
  ~ThreadExecutor() override {
    flush_.stop();
    compaction_.stop();
  }

  void schedule(Lane lane, Task task) override { thread_of(lane).schedule(std::move(task)); }

  void schedule_after(Lane lane, std::int64_t delay_ns, Task task) override {
    if (delay_ns <= 0) return schedule(lane, std::move(task));
    thread_of(lane).schedule_at(
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(delay_ns), std::move(task));
  }

  bool run_one() override { return false; }

 private:
  LaneThread& thread_of(Lane lane) { return lane == Lane::Flush ? flush_ : compaction_; }

  LaneThread flush_{"ec-flush"};
  LaneThread compaction_{"ec-compaction"};
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor() {
  return std::make_unique<ThreadExecutor>();
}

}  // namespace edgecase
